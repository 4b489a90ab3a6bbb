#include "tools/cortiq-compile/options.h"

#include <algorithm>
#include <cstdio>

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include "compiler/emit/emit_artifact.h"
#include "compiler/target/target_table.h"
#include "formats/artifact/artifact_file.h"
#include "formats/artifact/artifact_signature.h"
#include "formats/atomic_file.h"
#include "formats/quote.h"
#include "tools/llvm_options.h"

namespace cl = llvm::cl;

namespace cortiq::tools {
namespace {

constexpr char kOverview[] =
    R"(Compiles a quantized language model (CMF or GGUF) to an artifact for one kind of machine.

  cortiq-compile model.gguf -o model.cqa       then: cortiq-run model.cqa -p "Hello"
  cortiq-compile --interpret MODEL OPTIONS     runs it on the reference interpreter, with the options of cortiq-run

Exit status: 0 done, 1 a bug of ours, 2 something is wrong with the command, the model or the machine.
)";

constexpr uint64_t kMaxContext = uint64_t{1} << 24; // beyond it f32 no longer tells positions apart
constexpr uint64_t kMaxBatch = 65536;
constexpr uint64_t kMaxThreads = 1024;
constexpr uint64_t kMaxGpuRange = UINT32_MAX; // what a device can say that it binds
constexpr uint64_t kMaxPathMemory = uint64_t{1} << 32;

struct EmitWord {
  llvm::StringLiteral word;
  EmitKind kind;
};
constexpr EmitWord kEmitWords[] = {{"artifact", EmitKind::kArtifact},
                                   {"cmf", EmitKind::kCmf},
                                   {"kernel", EmitKind::kKernel},
                                   {"vec", EmitKind::kVec},
                                   {"asm", EmitKind::kAsm}};

// Takes the word "vulkan" out of a list of targets; what the GPU cannot run is compiled for the plainest CPU then.
bool take_vulkan(std::string& targets) {
  bool found = false;
  std::string rest;
  for (size_t at = 0; at <= targets.size();) {
    const size_t end = std::min(targets.find(',', at), targets.size());
    const std::string word = targets.substr(at, end - at);
    at = end + 1;
    if (word == "vulkan")
      found = true;
    else
      rest += (rest.empty() ? "" : ",") + word;
  }
  if (found)
    targets = rest.empty() ? "x86-64-v3" : rest;
  return found;
}

void list_targets() {
  std::printf("native           the best of these that this machine can run\n");
  for (const compiler::Target& target : compiler::targetTable())
    std::printf("%-16s %s\n", std::string(target.name).c_str(), std::string(target.summary).c_str());
  std::printf("%-16s %s\n", "vulkan", "any GPU with Vulkan 1.2; vulkan,NAME names the CPU beside it (x86-64-v3)");
}

// The first line of what LLVM's parser wrote, without the program's name in front.
std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

/// Reads a given option that takes a number from 1 to `most`; `out` keeps its value where it was not given.
template <class T>
Status read_number(const cl::opt<std::string>& option, uint64_t most, T& out) {
  if (option.getNumOccurrences() == 0)
    return {};
  uint64_t value = 0;
  if (llvm::StringRef(option).getAsInteger(10, value) || value == 0 || value > most)
    return invalid((option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr.str() + " takes a number from 1 to " +
                   std::to_string(most) + ", not " + formats::quote(option));
  out = static_cast<T>(value);
  return {};
}

Status read_emit(const cl::opt<std::string>& option, EmitKind& out) {
  if (option.getNumOccurrences() == 0)
    return {};
  for (const EmitWord& row : kEmitWords)
    if (row.word == llvm::StringRef(option)) {
      out = row.kind;
      return {};
    }
  return invalid("--emit is artifact, cmf, kernel, vec or asm, not " + formats::quote(option));
}

/// Whether prompts are multiplied in 16 bits: as `word` says, or, where it is empty, as the targets have it.
bool half_prompts(const std::string& word, const CompileOptions& o) {
  if (!word.empty() || o.numerics != "fast" || !o.gemv.empty())
    return word == "half";
  if (o.vulkan)
    return compiler::kHalfPromptsOnGpus;
  const auto targets = compiler::findTargets(o.target, compiler::readHost()); // refuses them later, if need be
  return targets.ok() && std::ranges::any_of(*targets, [](const compiler::Target& target) {
           return target.halfPrompts && !target.bf16Features.empty();
         });
}

Status check(const CompileOptions& o) {
  if (o.numerics != "fast" && o.numerics != "exact")
    return invalid("--numerics is fast or exact, not '" + o.numerics + "'");
  if (o.half_prompts && o.numerics != "fast")
    return invalid("--prompt-numerics=half belongs to --numerics=fast");
  if (o.q4tp_ladder != "exact" && o.q4tp_ladder != "vector")
    return invalid("--q4tp-ladder is exact or vector, not " + formats::quote(o.q4tp_ladder));
  if (o.q4tp_ladder != "exact" && !o.gemv.empty())
    return invalid("--q4tp-ladder belongs to a model, not to --gemv");
  if (o.sign && o.emit != EmitKind::kArtifact)
    return invalid("--sign belongs to an artifact, not to --emit");
  if (o.emit == EmitKind::kArtifact && o.output.empty())
    return invalid("name the artifact to write with -o OUT.cqa");
  if (o.gemv.empty()) {
    if (o.model.empty())
      return invalid("name the model to compile; --help shows how");
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(o.model, o.output));
    if (!o.shape.empty() || !o.layout.empty())
      return invalid("--shape and --layout belong to --gemv");
    if (o.weights == "link")
      return unsupported("--weights=link is not built yet; use --weights=embed");
    if (o.weights != "embed" && o.weights != "none")
      return invalid("--weights is embed or none, not '" + o.weights + "'");
    if (o.gpu_experts != "all" && o.gpu_experts != "bank" && o.gpu_experts != "bank-bf16")
      return invalid("--gpu-experts is all, bank or bank-bf16, not '" + o.gpu_experts + "'");
    if (o.gpu_experts != "all" && !o.vulkan)
      return invalid("--gpu-experts=" + o.gpu_experts + " is for a GPU; add vulkan to --target");
    if (o.gpu_range != 0 && !o.vulkan)
      return invalid("--gpu-range is for a GPU; add vulkan to --target");
    return {};
  }
  if (!o.model.empty())
    return invalid("--gemv compiles one kernel and takes no model");
  if (!o.require_key.empty() || !o.cache_key.empty())
    return invalid("--require-key and --cache-key belong to a model, --gemv takes none");
  if (o.shape.empty() || o.weights.empty() || o.weights == "embed")
    return invalid("--gemv needs --shape ROWSxCOLS and --weights FILE");
  if (!o.layout.empty() && o.layout != "r16" && o.layout != "verbatim")
    return invalid("--layout is r16 or verbatim, not '" + o.layout + "'");
  return {};
}

} // namespace

StatusOr<std::optional<CompileOptions>> parse_options(int argc, char** argv) {
  // LLVM's libraries register options of their own; this program has none of them.
  cl::ResetCommandLineParser();
  cl::OptionCategory main("Options"), inspect("Looking inside"), kernels("Artifacts of one kernel");
  CompileOptions o;

  cl::opt<std::string, true> model(cl::Positional, cl::desc("MODEL"), cl::location(o.model), cl::cat(main));
  cl::opt<std::string, true> output("o", cl::desc("File to write; text goes to the standard output without it"),
                                    cl::value_desc("FILE"), cl::location(o.output), cl::cat(main));
  cl::opt<std::string, true> target(
      "target",
      cl::desc("Machines to compile for: native, or names that '--target help' lists, with "
               "commas between; several share the weights, and the best one that a "
               "machine can run is taken when the artifact is loaded"),
      cl::value_desc("NAME[,NAME...]"), cl::location(o.target), cl::init("native"), cl::cat(main));
  cl::opt<std::string, true> numerics("numerics", cl::desc("fast: activations as int8; exact: as f32"),
                                      cl::value_desc("fast|exact"), cl::location(o.numerics), cl::init("fast"),
                                      cl::cat(main));
  cl::opt<std::string> prompt_numerics(
      "prompt-numerics",
      cl::desc(
          "same: prompts are multiplied in 8 bits, as what is generated; half: in 16 bits, on tiles of amx or matrices "
          "of a GPU, quicker and nearer to exact. Default: half for amx and vulkan with --numerics=fast, else same"),
      cl::value_desc("same|half"), cl::cat(main));
  cl::opt<std::string, true> task("task",
                                  cl::desc("Compile for this task mask alone: what it switches off is left out"),
                                  cl::value_desc("NAME"), cl::location(o.task), cl::cat(main));
  cl::opt<std::string, true> weights(
      "weights", cl::desc("embed: weights inside the artifact; none: program and kernels only"),
      cl::value_desc("embed|none"), cl::location(o.weights), cl::init("embed"), cl::cat(main));
  cl::opt<std::string, true> q4tp_ladder(
      "q4tp-ladder",
      cl::desc(
          "Scales of q4tp, powers of two: exact as the C library's exp2f gives them, which is what the file means; "
          "vector as the polynomial of the reference's AVX2 kernels does"),
      cl::value_desc("exact|vector"), cl::location(o.q4tp_ladder), cl::init("exact"), cl::cat(main));
  cl::opt<std::string, true> gpu_experts(
      "gpu-experts",
      cl::desc("Experts on a GPU: all of them; bank: as many as fit its memory, and the CPU runs the others "
               "(of q4tp, mxfp4, or q2tp with q4tp); bank-bf16: with bf16 between the products"),
      cl::value_desc("all|bank|bank-bf16"), cl::location(o.gpu_experts), cl::init("all"), cl::cat(main));
  cl::opt<std::string, true> path(
      "path",
      cl::desc("How products with many tokens are made: fused decodes weights for a few tokens at a time, materialised "
               "once for all, in the worker's memory; auto: by measured costs, which cortiq-inspect --paths shows. "
               "PATTERN=WORD, separated by commas, for matrices whose names match"),
      cl::value_desc("auto|fused|materialised"), cl::location(o.path), cl::init("auto"), cl::cat(main));
  cl::opt<std::string> path_memory("path-memory",
                                   cl::desc("Bytes of a worker's memory that materialised weights may take (default: "
                                            "the second-level cache, at least 1 MiB)"),
                                   cl::value_desc("N"), cl::cat(main));
  // Numbers and words are read below: what LLVM's parser says of a wrong one is no sentence.
  cl::opt<std::string> max_context("max-context", cl::desc("Positions the artifact serves (default: as trained)"),
                                   cl::value_desc("N"), cl::cat(main));
  cl::opt<std::string> max_batch("max-batch",
                                 cl::desc("Tokens of a prompt that are worked on together (default 256, 512 with "
                                          "--prompt-numerics=half or vulkan)"),
                                 cl::value_desc("N"), cl::cat(main));
  cl::opt<std::string> gpu_range("gpu-range",
                                 cl::desc("Bytes of a matrix from which on a GPU that cannot bind all of it gets it in "
                                          "parts of so many (default: the 128 MiB that every device of Vulkan binds)"),
                                 cl::value_desc("N"), cl::cat(main));
  cl::opt<std::string> threads("j", cl::desc("Threads (default: all cores)"), cl::value_desc("N"), cl::Prefix,
                               cl::cat(main));

  cl::opt<std::string, true> require_key("require-key",
                                         cl::desc("Refuse a model that is not signed with this ed25519 key: 64 digits, "
                                                  "or the file that holds them"),
                                         cl::value_desc("KEY"), cl::location(o.require_key), cl::cat(main));
  cl::opt<std::string> sign("sign",
                            cl::desc("Sign the artifact, beside it as FILE.sig, with the key of this file, which "
                                     "cortiq-skill make-key makes"),
                            cl::value_desc("KEYFILE"), cl::cat(main));
  cl::opt<std::string, true> cache_key("cache-key", cl::desc("Write this into the artifact's options"),
                                       cl::value_desc("TEXT"), cl::location(o.cache_key), cl::cat(main), cl::Hidden);

  cl::opt<std::string> emit("emit",
                            cl::desc("What to write: the artifact (default), the fused graph (cmf dialect), the "
                                     "program (kernel dialect), the kernels (vec dialect), or their assembly"),
                            cl::value_desc("artifact|cmf|kernel|vec|asm"), cl::cat(inspect));
  cl::opt<bool, true> print_ir("print-ir-after-all", cl::desc("Print the IR after every pass to the standard error"),
                               cl::location(o.print_ir_after_all), cl::cat(inspect));
  cl::opt<bool, true> time_passes("time-passes", cl::desc("Print how long every pass and step took"),
                                  cl::location(o.time_passes), cl::cat(inspect));

  cl::opt<std::string, true> gemv("gemv", cl::desc("Compile one matrix kernel for this codec: cmf:q4tp, gguf:Q4_K, …"),
                                  cl::value_desc("FAMILY:SCHEME"), cl::location(o.gemv), cl::cat(kernels));
  cl::opt<std::string, true> shape("shape",
                                   cl::desc("Rows and columns of its matrix; --weights names the file with its bytes"),
                                   cl::value_desc("RxC"), cl::location(o.shape), cl::cat(kernels));
  cl::opt<std::string, true> layout("layout", cl::desc("Layout of its weights (default: as a compilation chooses)"),
                                    cl::value_desc("r16|verbatim"), cl::location(o.layout), cl::cat(kernels));

  cl::SetVersionPrinter([](llvm::raw_ostream& out) {
    out << "cortiq-compile " << compiler::compilerVersion() << ", artifact schema " << formats::kArtifactSchemaVersion
        << "\n";
  });
  const cl::OptionCategory* shown[] = {&main, &inspect, &kernels};
  cl::HideUnrelatedOptions(llvm::ArrayRef(shown));

  if (asks_for_description(argc, argv)) {
    describe_llvm_options("cortiq-compile", kOverview);
    return std::optional<CompileOptions>();
  }
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, kOverview, &stream))
    return invalid(first_line(errors));
  o.vulkan = take_vulkan(o.target);
  if (o.target == "help") {
    list_targets();
    return std::optional<CompileOptions>();
  }
  if (prompt_numerics.getNumOccurrences() != 0 && prompt_numerics != "same" && prompt_numerics != "half")
    return invalid("--prompt-numerics is same or half, not " + formats::quote(prompt_numerics));
  o.half_prompts = half_prompts(prompt_numerics, o);
  if (o.half_prompts || o.vulkan)
    o.max_batch = 512;
  CORTIQ_RETURN_IF_ERROR(read_number(max_context, kMaxContext, o.max_context));
  CORTIQ_RETURN_IF_ERROR(read_number(max_batch, kMaxBatch, o.max_batch));
  CORTIQ_RETURN_IF_ERROR(read_number(gpu_range, kMaxGpuRange, o.gpu_range));
  CORTIQ_RETURN_IF_ERROR(read_number(threads, kMaxThreads, o.threads));
  CORTIQ_RETURN_IF_ERROR(read_number(path_memory, kMaxPathMemory, o.path_memory));
  CORTIQ_RETURN_IF_ERROR(read_emit(emit, o.emit));
  if (require_key.getNumOccurrences() != 0 && o.require_key.empty())
    return invalid("--require-key takes a key, not an empty word; leave the option out to go without");
  if (sign.getNumOccurrences() != 0) {
    CORTIQ_ASSIGN_OR_RETURN(o.sign, formats::read_key_file(sign));
    // Now, not when the artifact is written.
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(sign, formats::artifact_signature_path(o.output)));
  }
  CORTIQ_RETURN_IF_ERROR(check(o));
  return std::optional(std::move(o));
}

} // namespace cortiq::tools
