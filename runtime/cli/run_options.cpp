#include "runtime/cli/run_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string_view>

#include "formats/artifact/artifact_file.h"
#include "formats/quote.h"
#include "formats/signing/signer_key.h"
#include "runtime/cli/device_word.h"
#include "runtime/cli/gpu_room.h"
#include "runtime/cli/memory_size.h"
#include "runtime/cli/tool_main.h"
#include "runtime/cli/whole_number.h"
#include "runtime/cli/word.h"

namespace cortiq::runtime::cli {
namespace {

constexpr uint64_t kMostThreads = 1024;

ParseOutcome refuse(const std::string& program, const std::string& sentence) {
  return {false, complain(program, sentence, kBadInput)};
}

/// "1,2,3"; the empty text is the empty list.
bool parse_ids(std::string_view text, std::vector<uint32_t>& ids) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      return false;
    ids.push_back(id);
    if (comma == std::string_view::npos)
      return true;
    text.remove_prefix(comma + 1);
    if (text.empty())
      return false;
  }
  return true;
}

struct RawOptions {
  std::string prompt, tokens, memory, speculate = "auto";
  GpuRoomWords gpu_room;
  CLI::Option *prompt_given = nullptr, *tokens_given = nullptr, *max_given = nullptr, *penalty_given = nullptr;
  CLI::Option* system_given = nullptr;
  CLI::Option *skill_given = nullptr, *blend_given = nullptr, *task_given = nullptr;
  uint64_t max_tokens = 0;
};

void declare(CLI::App& app, RunOptions& o, RawOptions& raw) {
  app.add_option("FILE", o.file, "an artifact (.cqa); or a CMF or GGUF model, which is compiled into the cache first");

  raw.prompt_given = app.add_option("-p,--prompt", raw.prompt, "text to continue; - reads standard input");
  raw.tokens_given = app.add_option("--tokens", raw.tokens, "the prompt as token ids: 1,2,3; nothing is added to them");
  app.add_flag("--chat", o.chat, "talk to the model: one message a line, until end of input; with -p: one answer");
  raw.system_given = app.add_option("--system", o.system, "system message of --chat");

  const std::string generation = "Generation";
  raw.max_given =
      app.add_option("-n,--max-tokens", raw.max_tokens, "tokens to generate at most (default: what the context holds)")
          ->check(whole_number(0))
          ->group(generation);
  app.add_option("--temp", o.sampling.temperature, "temperature; 0 takes the most likely token")
      ->capture_default_str()
      ->group(generation);
  app.add_option("--top-k", o.sampling.top_k, "keep the k most likely tokens; 0: all")
      ->check(whole_number(0, UINT32_MAX))
      ->capture_default_str()
      ->group(generation);
  app.add_option("--top-p", o.sampling.top_p, "keep the most likely tokens up to this sum; 1: all")
      ->capture_default_str()
      ->group(generation);
  app.add_option("--min-p", o.sampling.min_p, "drop tokens below this share of the most likely")
      ->capture_default_str()
      ->group(generation);
  raw.penalty_given = app.add_option("--repeat-penalty", o.sampling.repetition_penalty,
                                     "penalty on tokens seen before; 1: none (and the default with --temp 0)")
                          ->capture_default_str()
                          ->group(generation);
  app.add_option("--seed", o.sampling.seed, "seed of the draws")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group(generation);
  app.add_option(
         "--speculate", raw.speculate,
         "guess tokens ahead with the model's own head for it, where it has one: the text is the same; auto: while it "
         "saves time")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str()
      ->group(generation);
  app.add_flag("--ignore-eos", o.ignore_eos, "go on after the end token")->group(generation);

  const std::string overlay = "Skills and tasks";
  raw.skill_given =
      app.add_option("--skill", o.skill, "skill to use: its id, none, or auto: the one that the prompt is nearest to")
          ->type_name("ID")
          ->group(overlay);
  raw.blend_given = app.add_option("--blend", o.blend, "mix skills by weight: story:0.7,code:0.3")
                        ->type_name("ID:W,...")
                        ->group(overlay);
  raw.task_given =
      app.add_option("--task", o.task, "task mask to apply, or none (default: the skill's, else the model's)")
          ->type_name("NAME")
          ->group(overlay);

  const std::string sessions = "Sessions";
  app.add_option("--save-session", o.save_session,
                 "write what the session holds at the end, to go on from it in another run; with -n 0: a prompt cache")
      ->type_name("FILE")
      ->check(some_word)
      ->group(sessions);
  app.add_option("--load-session", o.load_session,
                 "go on from a saved session; with a prompt: re-use what it begins with of the saved tokens")
      ->type_name("FILE")
      ->check(some_word)
      ->group(sessions);

  const std::string output = "Output";
  app.add_flag("--json", o.json, "print one JSON object: tokens, text, finish_reason, usage, timings")->group(output);
  app.add_option("--logits", o.logits,
                 "write the logits of every prompt position: float32, row-major [positions x vocabulary]")
      ->type_name("OUT.f32")
      ->group(output);
  app.add_flag("--stats", o.stats, "print times and speeds on stderr, and which operations took them")->group(output);
  app.add_flag("--verbose", o.verbose, "print one line a kernel on stderr (also CORTIQ_VERBOSE=1)")->group(output);

  const std::string machine = "Machine";
  app.add_option("--backend", o.backend,
                 "cpu, or reference: the compiler's interpreter, slow and plain (needs the model file)")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->capture_default_str()
      ->group(machine);
  app.add_option("-t,--threads", o.threads, "threads; 0: what affinity, cgroup quota and cores allow")
      ->check(whole_number(0, kMostThreads))
      ->group(machine);
  app.add_option("--kv", o.kv, "element type of the key/value cache")
      ->check(CLI::IsMember({"f32", "f16", "q8"}))
      ->group(machine);
  app.add_option("--max-context", o.max_context, "positions of the context (default: the artifact's)")
      ->check(whole_number(1))
      ->group(machine);
  app.add_option(
         "--memory", raw.memory,
         "budget for weights, cache and work space, as in 8G or 512M: experts that do not fit are read from FILE "
         "as they are needed")
      ->check(memory_size())
      ->type_name("SIZE")
      ->group(machine);
  app.add_option("--pages", o.pages,
                 "pages of memory: as the system gives them, or large: weights are copied at load, caches and work "
                 "space take what the context could need")
      ->check(CLI::IsMember({"system", "large"}))
      ->capture_default_str()
      ->group(machine);
  app.add_option(
         "--device", o.device,
         "GPUs of an artifact compiled with --target vulkan: numbers with commas between them (layers are split "
         "among several), none for the CPU, list to see them (default auto: the first that is not a CPU itself)")
      ->group(machine)
      ->check(check_device);
  add_gpu_room(app, raw.gpu_room, machine);
  app.add_option("--fallback", o.fallback, "cpu: when the GPU fails, the CPU goes on")
      ->group(machine)
      ->check(CLI::IsMember({"cpu"}));
  app.add_option("--numa", o.numa, "several memory nodes: interleave memory and bind workers (auto), or neither (off)")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(machine);
  app.add_option("--target", o.target,
                 "instruction set to run, of those that the artifact holds (default: the best that this machine has); "
                 "for a model: to compile it for (default: native, and vulkan where --device names a GPU)")
      ->type_name("NAME")
      ->group(machine);
  app.add_flag("--verify", o.verify, "check the hash of every part of the weights first")->group(machine);
  app.add_option("--require-key", o.require_key,
                 "refuse an artifact or a model that is not signed with this ed25519 key: 64 digits, or the file that "
                 "holds them")
      ->type_name("KEY")
      ->check(some_word)
      ->group(machine);
  app.add_flag("--doctor", o.doctor, "say what this machine offers and whether FILE fits it")->group(machine);

  const std::string compile = "A model instead of an artifact";
  app.add_option("--numerics", o.numerics, "how to compile it: fast or exact")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->group(compile);
  app.add_option("--prompt-numerics", o.prompt_numerics,
                 "same: prompts are multiplied in 8 bits, as what is generated; half: in 16 bits, where the target has "
                 "units for it")
      ->check(CLI::IsMember({"same", "half"}))
      ->group(compile);
  app.add_option("--q4tp-ladder", o.q4tp_ladder,
                 "scales of q4tp: exact as the file means them, vector as the reference's AVX2 kernels compute them")
      ->check(CLI::IsMember({"exact", "vector"}))
      ->group(compile);
  app.add_option("--gpu-experts", o.gpu_experts,
                 "with --target vulkan, a mixture's experts on the GPU: all of them, or a bank of as many as fit "
                 "(bank-bf16: its values between products are rounded to bf16)")
      ->check(CLI::IsMember({"all", "bank", "bank-bf16"}))
      ->group(compile);
  app.add_option("--cache", o.cache, "folder of compiled models (default: $XDG_CACHE_HOME/cortiq or ~/.cache/cortiq)")
      ->type_name("DIR")
      ->group(compile);
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

ParseOutcome settle(const std::string& program, RunOptions& o, const RawOptions& raw) {
  if (raw.tokens_given->count() != 0) {
    o.tokens.emplace();
    if (!parse_ids(raw.tokens, *o.tokens))
      return refuse(program, "--tokens takes ids as in 1,2,3, not " + formats::quote(raw.tokens));
  }
  if (raw.prompt_given->count() != 0)
    o.prompt = raw.prompt == "-" ? read_standard_input() : raw.prompt;
  o.speculation = raw.speculate == "on"    ? Speculation::kOn
                  : raw.speculate == "off" ? Speculation::kOff
                                           : Speculation::kAuto;
  o.memory = parse_memory_size(raw.memory).value_or(0);
  o.gpu_room = raw.gpu_room.room();
  if (raw.max_given->count() != 0)
    o.max_tokens = raw.max_tokens;
  if (o.sampling.temperature < 1e-6f && raw.penalty_given->count() == 0)
    o.sampling.repetition_penalty = 1;
  if (const char* verbose = std::getenv("CORTIQ_VERBOSE"); verbose && std::string_view(verbose) != "0" && *verbose)
    o.verbose = true;
  if (const Status status = o.sampling.validate(); !status.ok())
    return refuse(program, status.message());
  if (!o.require_key.empty()) {
    const auto key = formats::read_public_key(o.require_key, "--require-key");
    if (!key.ok())
      return refuse(program, key.status().message());
    o.require_key = formats::signer_key_hex(*key);
    o.artifact_key = *key;
  }
  if (o.file.empty() && !o.doctor && o.device != "list")
    return refuse(program, "it needs a FILE to run; see --help");
  // An empty word is a variable of a script that was never set; it is no wish to run without.
  if (raw.skill_given->count() != 0 && o.skill.empty())
    return refuse(program, "--skill takes the id of a skill, none or auto, not an empty word");
  if (raw.blend_given->count() != 0 && o.blend.empty())
    return refuse(program, "--blend takes skills with their weights as in story:0.7,code:0.3, not an empty word");
  if (raw.task_given->count() != 0 && o.task.empty())
    return refuse(program, "--task takes the name of a task or none, not an empty word");
  if (!o.skill.empty() && !o.blend.empty())
    return refuse(program, "--skill and --blend exclude each other");
  if (o.prompt && o.tokens)
    return refuse(program, "-p and --tokens exclude each other");
  if (o.chat && o.tokens)
    return refuse(program, "--chat and --tokens exclude each other");
  if (o.memory != 0 && o.backend == "reference")
    return refuse(program, "--memory is for compiled models; the reference backend has no budget");
  if (raw.system_given->count() != 0 && !o.chat)
    return refuse(program, "--system is the system message of --chat, which was not asked for");
  if (o.chat && !o.logits.empty())
    return refuse(program, "--logits writes the logits of one prompt: give it with -p or --tokens, without --chat");
  const bool asked = o.chat || o.prompt || o.tokens;
  if (!o.doctor && o.device != "list" && !o.verify && !asked && o.load_session.empty())
    return refuse(program, "it needs -p TEXT, --chat, --tokens IDS or --load-session FILE; see --help");
  if (!o.save_session.empty() && !asked && o.load_session.empty())
    return refuse(program, "--save-session keeps what a prompt left: give -p TEXT, --chat, --tokens IDS or "
                           "--load-session FILE");
  if (o.backend == "reference" && !(o.save_session + o.load_session).empty())
    return refuse(program, "the reference backend saves and loads no sessions; leave --backend out");
  if (!o.load_session.empty() && !o.logits.empty())
    return refuse(program, "--logits runs every position of the prompt; leave --load-session out");
  if (!o.load_session.empty() && o.skill == "auto" && (o.chat || !asked))
    return refuse(program, "--skill auto goes by a prompt; name the skill that the session was saved under");
  return {true, 0};
}

} // namespace

ParseOutcome parse_run_options(int argc, const char* const* argv, const std::string& program, RunOptions& options) {
  CLI::App app("Runs a compiled language model.", program);
  app.set_version_flag("--version", program + " " CORTIQ_VERSION " (artifact schema " +
                                        std::to_string(formats::kArtifactSchemaVersion) + ")");
  app.footer("Exit codes: 0 done, 2 bad input or command line or a machine that cannot run it, 1 a bug of ours.");
  RawOptions raw;
  declare(app, options, raw);
  if (const std::optional<int> end = parse_command_line(app, program, argc, argv))
    return {false, *end};
  return settle(program, options, raw);
}

} // namespace cortiq::runtime::cli
