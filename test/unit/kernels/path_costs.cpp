// What the paths of a matrix product cost on this machine: the figures behind codegen/kernels/path_cost.cpp.
//
//   path_costs [TARGET [COLUMNS [CODEC…]]]
//
// One line a codec, target and arm: picoseconds of processor time a weight and token of the fused kernels, of the
// materialised path with 256 tokens, and what the latter spends a weight on decoding, by the difference to 32 tokens.

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "mlir/IR/MLIRContext.h"

#include "codegen/kernels/build_kernel.h"
#include "codegen/kernels/wide_core.h"
#include "test/unit/kernels/kernel_runner.h"
#include "test/unit/kernels/q8k.h"
#include "test/unit/kernels/x86_targets.h"
#include "test/unit/x86/kernel_harness.h"

namespace cortiq::test {
namespace {

constexpr uint64_t kGroups = 8;
constexpr uint32_t kTokens = 256;

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Machine code in memory that it can run from.
class Loaded {
public:
  explicit Loaded(const codegen::MachineCode& code) : bytes_(code.bytes.size()) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, code.bytes.data(), bytes_);
    mprotect(memory_, bytes_, PROT_READ | PROT_EXEC);
  }
  ~Loaded() { munmap(memory_, bytes_); }
  void run(const formats::KernelArgs* args) const { reinterpret_cast<formats::KernelFn>(memory_)(args); }

private:
  void* memory_;
  size_t bytes_;
};

/// Picoseconds a weight and token that `tokens` tokens cost by kernels of `tile` tokens; the best of several runs.
double measure(mlir::MLIRContext& context, const KernelProblem& problem, const X86Target& target,
               const KernelData& data, uint32_t tile, uint32_t tokens) {
  codegen::KernelSpec spec = problem.spec;
  spec.tokens = tile;
  auto kernel = codegen::build_kernel(context, spec, target.unit);
  auto code = codegen::emit_x86(**kernel, *codegen::x86_target(target.name), {});
  const Loaded loaded(*code);
  const formats::R16Format format = *formats::r16_format(formats::codec_info(spec.codec), spec.k);
  std::vector<float> out(data.out_stride / 4 * tokens + 32);
  std::vector<uint8_t> scratch(formats::many_kernel_scratch_bytes(spec.k, kTokens, true) + 64);
  double best = 1e9;
  for (unsigned run = 0; run < 5; ++run) {
    double spent = 0;
    unsigned times = 0;
    while (spent < 0.02) {
      const double start = cpu_seconds();
      for (uint32_t t = 0; t < tokens; t += std::min(tile, tokens)) {
        formats::KernelArgs args{};
        args.tensor = data.weights.data();
        args.weights = data.weights.data() + format.tensor_bytes;
        args.act = data.act.data() + t * data.act_stride;
        args.out = out.data() + t * (data.out_stride / 4);
        args.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
        args.groups = kGroups;
        args.act_stride = data.act_stride;
        args.out_stride = data.out_stride;
        args.tensor_rows = data.rows;
        args.tokens = std::min(tile, tokens);
        loaded.run(&args);
      }
      spent += cpu_seconds() - start;
      ++times;
    }
    best = std::min(best, spent / times);
  }
  return best * 1e12 / double(data.rows * spec.k * tokens);
}

/// Activations with one scale a record beside those in groups of 32: the cost by 1 and by several tokens at once, and
/// the error of each form, relative to what a row's sum is expected to be, with every 61st activation twelve times as
/// large.
void measure_wide(const formats::Codec& codec, const X86Target& target, uint64_t k) {
  mlir::MLIRContext context;
  const uint32_t tile = target.unit.lanes == 8 ? 4 : 8;
  KernelProblem exact{{.codec = codec.id, .k = k, .tokens = tile, .arm = codegen::Arm::kExact, .isa = target.name},
                      kGroups};
  const KernelData data = make_kernel_data(exact, Data::kOrdinary, 1);
  KernelData fast = data, wide = data;
  fast.act.clear();
  wide.act.clear();
  for (uint32_t t = 0; t < tile; ++t) {
    std::vector<float> x(k);
    std::memcpy(x.data(), &data.act[t * data.act_stride], k * 4);
    const std::vector<uint8_t> groups = quantize_q8a(x), records = quantize_q8k(x, codec.block).bytes;
    fast.act.insert(fast.act.end(), groups.begin(), groups.end());
    wide.act.insert(wide.act.end(), records.begin(), records.end());
    fast.act_stride = groups.size();
    wide.act_stride = records.size();
  }
  for (const auto& [arm, form, name] :
       {std::tuple(codegen::Arm::kFast, &fast, "q8a"), std::tuple(codegen::Arm::kWide, &wide, "q8k")}) {
    KernelProblem problem = exact;
    problem.spec.arm = arm;
    const double one = measure(context, problem, target, *form, 1, 1);
    const double several = measure(context, problem, target, *form, tile, tile);
    auto kernel = codegen::build_kernel(context, problem.spec, target.unit);
    auto code = codegen::emit_x86(**kernel, *codegen::x86_target(target.name), {});
    const std::vector<float> y =
        run_kernel(problem, *form, [&](const formats::KernelArgs* args) { testing::call(*code, args); });
    double error = 0;
    for (size_t i = 0; i < y.size(); ++i)
      error += std::pow((y[i] - data.expected[i]) / data.magnitude[i], 2);
    std::printf("// %s %s %s: ps a weight and token %.1f (1 token), %.1f (%u at once); error %.2e of sum |w x|\n",
                std::string(codec.name).c_str(), target.name, name, one, several, tile,
                std::sqrt(error / double(y.size())));
  }
}

void measure_codec(const formats::Codec& codec, const X86Target& target, uint64_t k) {
  mlir::MLIRContext context;
  for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
    KernelProblem problem{{.codec = codec.id, .k = k, .tokens = kTokens, .arm = arm, .isa = target.name}, kGroups};
    if (!codegen::can_build(problem.spec).ok())
      continue;
    const KernelData data = make_kernel_data(problem, Data::kOrdinary, 1);
    const double fused = measure(context, problem, target, data, target.unit.lanes == 8 ? 4 : 8, kTokens);
    const double many = measure(context, problem, target, data, kTokens, kTokens);
    const double few = measure(context, problem, target, data, kTokens, 32);
    const double decode = std::max(0.0, (few - many) / (1.0 / 32 - 1.0 / kTokens));
    std::printf("{\"%s\", \"%s\", Arm::%s, {%.1f, %.1f, %.0f}}, // %.2f\n", std::string(codec.name).c_str(),
                target.name, arm == codegen::Arm::kFast ? "kFast" : "kExact", fused,
                std::max(0.0, many - decode / kTokens), decode, fused / many);
    std::fflush(stdout);
  }
}

} // namespace
} // namespace cortiq::test

int main(int argc, char** argv) {
  using namespace cortiq;
  for (const auto& target : test::kX86Targets) {
    if (argc > 1 && std::strcmp(argv[1], target.name) != 0)
      continue;
    if (const std::string missing = testing::missing_for(target.name); !missing.empty()) {
      std::printf("%s: this machine lacks %s\n", target.name, missing.c_str());
      continue;
    }
    const uint64_t k = argc < 3 ? 2048 : std::strtoull(argv[2], nullptr, 10);
    for (const formats::Codec& codec : formats::codec_table())
      if (argc < 4 || std::any_of(argv + 3, argv + argc, [&](const char* name) { return codec.name == name; })) {
        test::measure_codec(codec, target, k);
        if (codegen::has_wide_form(codec.id))
          test::measure_wide(codec, target, k);
      }
  }
  return 0;
}
