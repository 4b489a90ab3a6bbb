// Sessions in files: what goes on from one is what would have gone on without, and no damage to it passes.

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <sys/resource.h>
#include <vector>

#include "formats/artifact/artifact_hash.h"
#include "formats/overlay/selection.h"
#include "runtime/session/saved_session.h"
#include "test/unit/runtime/recurrent_model.h"
#include "test/unit/runtime/session_fixture.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

struct Kind {
  const char* name;
  std::function<Status(const std::string&)> write;
};

/// A cache with windows, recurrent states, and both with a ring.
const Kind kKinds[] = {
    {"attention", [](const std::string& path) { return test::TinyModel().write(path); }},
    {"recurrent", [](const std::string& path) { return test::write_recurrent_model(path); }},
    {"ring", [](const std::string& path) { return test::write_recurrent_model(path, 20, true); }},
};
constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kQ8};

class SavedSessionTest : public test::SessionFixture {
protected:
  SavedSessionTest() : SessionFixture(test::kRecurrentVocab - 1) {}

  std::shared_ptr<const Model> load(const Kind& kind) {
    const std::string path = folder_.file(std::string(kind.name) + ".cqa");
    return SessionFixture::load(path, kind.write(path));
  }

  static std::unique_ptr<Session> open(const std::shared_ptr<const Model>& model, KvType kv = KvType::kF32,
                                       uint64_t context = 0) {
    return SessionFixture::open(model, 1, kv, context);
  }

  static std::vector<float> run(Session& session, std::span<const uint32_t> tokens) {
    return SessionFixture::run(session, tokens, 7);
  }

  static Status restore(const std::string& path, Session& session) {
    CORTIQ_ASSIGN_OR_RETURN(const SavedSession saved, SavedSession::open(path));
    return saved.restore(session);
  }

  static Bytes read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
  }

  static void write(const std::string& path, std::span<const uint8_t> bytes) {
    std::filesystem::remove(path); // some file systems flush what takes the place of something
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
};

TEST_F(SavedSessionTest, GoesOnAsIfNothingHadHappened) {
  for (const Kind& kind : kKinds) {
    const auto model = load(kind);
    for (const KvType kv : kTypes)
      for (const size_t held : {0u, 1u, 16u, 33u, 100u, 140u}) {
        const std::string what = std::string(kind.name) + " " + kv_type_name(kv) + " " + std::to_string(held);
        const auto before = text(held), after = text(9, 1);
        auto own = open(model, kv);
        run(*own, before);
        const std::string path = folder_.file("s");
        const Status saved = save_session(path, *own, {before});
        ASSERT_TRUE(saved.ok()) << what << saved.message();
        const std::vector<float> want = run(*own, after);

        auto other = open(model, kv);
        run(*other, text(150, 2)); // whatever it held
        const Status restored = restore(path, *other);
        ASSERT_TRUE(restored.ok()) << what << restored.message();
        EXPECT_EQ(other->position(), held);
        expect_same(run(*other, after), want, what);
      }
  }
}

TEST_F(SavedSessionTest, GoesBackInWhatWasLoaded) {
  for (const Kind& kind : kKinds) {
    const auto model = load(kind);
    const auto before = text(120), after = text(20, 1);
    auto own = open(model);
    run(*own, before);
    ASSERT_TRUE(save_session(folder_.file("s"), *own, {before}).ok());
    for (const uint64_t back : {120u, 119u, 100u, 3u, 0u}) {
      auto other = open(model), fresh = open(model);
      ASSERT_TRUE(restore(folder_.file("s"), *other).ok());
      other->rewind(back);
      run(*fresh, std::span(before).first(back));
      expect_same(run(*other, after), run(*fresh, after), kind.name + (" back to " + std::to_string(back)));
    }
  }
}

TEST_F(SavedSessionTest, SavesWhatIsHeldAndNothingOfWhatWasTakenBack) {
  for (const Kind& kind : kKinds) {
    const auto model = load(kind);
    const auto before = text(50);
    for (const KvType kv : kTypes) {
      auto own = open(model, kv), strayed = open(model, kv);
      run(*own, before);
      run(*strayed, before);
      run(*strayed, text(5, 3));
      strayed->rewind(50);
      ASSERT_TRUE(save_session(folder_.file("a"), *own, {before}).ok());
      ASSERT_TRUE(save_session(folder_.file("b"), *strayed, {before}).ok());
      auto a = open(model, kv), b = open(model, kv);
      ASSERT_TRUE(restore(folder_.file("a"), *a).ok());
      ASSERT_TRUE(restore(folder_.file("b"), *b).ok());
      expect_same(run(*b, text(9, 1)), run(*a, text(9, 1)), kind.name);
      if (std::string_view(kind.name) != "ring") { // a ring lost more of its past
        EXPECT_EQ(read(folder_.file("a")), read(folder_.file("b"))) << kind.name;
      }
    }
  }
}

TEST_F(SavedSessionTest, KeepsTheSequence) {
  const auto model = load(kKinds[0]);
  auto own = open(model);
  const auto tokens = text(12);
  run(*own, std::span(tokens).first(11));
  ASSERT_TRUE(save_session(folder_.file("s"), *own, {tokens, 77, R"([{"role":"user"}])"}).ok());
  const auto saved = SavedSession::open(folder_.file("s"));
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->sequence().tokens, tokens);
  EXPECT_EQ(saved->position(), 11u);
  EXPECT_EQ(saved->sequence().draws, 77u);
  EXPECT_EQ(saved->sequence().conversation, R"([{"role":"user"}])");
}

TEST_F(SavedSessionTest, RefusesWhatDoesNotFitAndNamesTheRemedy) {
  const auto model = load(kKinds[0]), other = load(kKinds[1]);
  auto own = open(model);
  run(*own, text(40));
  ASSERT_TRUE(save_session(folder_.file("s"), *own, {text(40)}).ok());
  const auto refusal = [&](std::unique_ptr<Session> session) {
    run(*session, text(5, 1));
    const Status status = restore(folder_.file("s"), *session);
    EXPECT_EQ(session->position(), 5u) << "the session has to be as before";
    return status.message();
  };
  EXPECT_THAT(refusal(open(other)), HasSubstr("another artifact"));
  EXPECT_THAT(refusal(open(model, KvType::kF16)), HasSubstr("give --kv f32"));
  EXPECT_THAT(refusal(open(model, KvType::kF32, 39)), HasSubstr("give --max-context 40"));
  EXPECT_THAT(SavedSession::open(folder_.path()).status().message(), HasSubstr("is not a file"));
  EXPECT_THAT(SavedSession::open(folder_.file("none")).status().message(), HasSubstr("No such file"));
  EXPECT_THAT(SavedSession::open(folder_.file("attention.cqa")).status().message(), HasSubstr("--save-session wrote"));
}

TEST_F(SavedSessionTest, RefusesAnotherOverlayAndNamesIt) {
  const test::TinyModel skills[] = {test::TinyModel(1, 7), test::TinyModel(1, 99)};
  ASSERT_TRUE(test::TinyModel().write(folder_.file("m.cqa"), skills).ok());
  const auto model = *Model::load(folder_.file("m.cqa"));
  const auto under = [&](const formats::OverlayRequest& request) {
    auto session = open(model);
    EXPECT_TRUE(session->set_overlay(*formats::select_overlay(model->overlay(), request)).ok());
    return session;
  };
  const formats::OverlayRequest skill{.skill = "s1", .blend = {}, .task = "half"},
      blend{.skill = {}, .blend = {{"s0", 0.25}, {"s1", 0.75}}, .task = {}};
  auto own = under(skill), mixed = under(blend);
  run(*own, text(20));
  run(*mixed, text(20));
  ASSERT_TRUE(save_session(folder_.file("skill"), *own, {text(20)}).ok());
  ASSERT_TRUE(save_session(folder_.file("blend"), *mixed, {text(20)}).ok());
  auto plain = under({});
  EXPECT_THAT(restore(folder_.file("skill"), *plain).message(), HasSubstr("give --skill s1 --task half"));
  EXPECT_THAT(restore(folder_.file("blend"), *plain).message(), HasSubstr("give --blend s0:0.25,s1:0.75 --task open"));
  auto same = under(skill), same_blend = under(blend);
  EXPECT_TRUE(restore(folder_.file("skill"), *same).ok());
  expect_same(run(*same, text(4, 1)), run(*own, text(4, 1)), "skill");
  EXPECT_TRUE(restore(folder_.file("blend"), *same_blend).ok());
  expect_same(run(*same_blend, text(4, 1)), run(*mixed, text(4, 1)), "blend");
}

TEST_F(SavedSessionTest, RefusesEveryCutAndEveryFlip) {
  for (const Kind& kind : kKinds) {
    const auto model = load(kind);
    auto own = open(model, KvType::kF16);
    const auto tokens = text(40), after = text(6, 1);
    run(*own, tokens);
    ASSERT_TRUE(save_session(folder_.file("s"), *own, {tokens}).ok());
    const Bytes whole = read(folder_.file("s"));
    auto fresh = open(model, KvType::kF16), victim = open(model, KvType::kF16);
    const std::vector<float> want = run(*fresh, after);
    size_t cases = 0;
    const auto expect_refused = [&](const Bytes& bytes, const std::string& what) {
      write(folder_.file("bad"), bytes);
      const Status status = restore(folder_.file("bad"), *victim);
      ASSERT_FALSE(status.ok()) << what;
      EXPECT_NE(status.code(), StatusCode::kInternal) << what;
      victim->reset();
      if (cases++ % 32 == 0)
        expect_same(run(*victim, after), want, what);
    };
    // The prefix and the header byte by byte, what is behind them in steps.
    for (size_t at = 0; at < whole.size(); at += at < 700 ? 1 : 211) {
      expect_refused(Bytes(whole.begin(), whole.begin() + static_cast<long>(at)), "cut at " + std::to_string(at));
      Bytes flipped = whole;
      flipped[at] ^= static_cast<uint8_t>(1u << (at % 8));
      expect_refused(flipped, "flip at " + std::to_string(at));
    }
    Bytes longer = whole;
    longer.push_back(0);
    expect_refused(longer, "a byte more");
  }
}

TEST_F(SavedSessionTest, TakesNoRightHashesWordForIt) {
  // As a stranger writes it: bytes changed, then both hashes made right.
  constexpr size_t kPrefix = 56, kHashed = 24, kHash = 32;
  std::mt19937 random(11);
  size_t taken = 0, refused = 0;
  for (const Kind& kind : kKinds) {
    const auto model = load(kind);
    auto own = open(model, KvType::kF16), victim = open(model, KvType::kF16);
    run(*own, text(40));
    ASSERT_TRUE(save_session(folder_.file("s"), *own, {text(40)}).ok());
    const Bytes whole = read(folder_.file("s"));
    uint64_t header = 0;
    std::memcpy(&header, whole.data() + 16, sizeof(header));
    const std::vector<float> want = run(*open(model, KvType::kF16), text(6, 1));
    for (int i = 0; i < 1200; ++i) {
      Bytes bytes = whole;
      const size_t begin = i % 2 ? kPrefix : kPrefix + header; // the header, or what is behind it
      const size_t end = i % 2 ? kPrefix + header : bytes.size() - kHash;
      for (int change = 0; change < 1 + i % 4; ++change)
        bytes[begin + random() % (end - begin)] = static_cast<uint8_t>(i % 8 < 2 ? 0xff : random());
      formats::Hasher256 hasher;
      hasher.add(std::span(bytes).first(kHashed));
      hasher.add(std::span(bytes).subspan(kPrefix, header));
      const formats::Hash256 first = hasher.finish();
      std::memcpy(bytes.data() + kHashed, first.data(), kHash);
      const formats::Hash256 last =
          formats::hash256(std::span(bytes).subspan(kPrefix + header, bytes.size() - kHash - kPrefix - header));
      std::memcpy(bytes.data() + bytes.size() - kHash, last.data(), kHash);
      write(folder_.file("bad"), bytes);
      const Status status = restore(folder_.file("bad"), *victim);
      (status.ok() ? taken : refused) += 1;
      EXPECT_NE(status.code(), StatusCode::kInternal) << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos);
      if (status.ok()) {
        EXPECT_TRUE(victim->forward(text(3), false).ok() || victim->position() != 0);
      }
      victim->reset();
      if (i % 64 == 0)
        expect_same(run(*victim, text(6, 1)), want, kind.name);
    }
  }
  EXPECT_GT(taken, 100u) << "changed numbers of a cache are numbers";
  EXPECT_GT(refused, 1000u);
}

TEST_F(SavedSessionTest, AFullDiskLeavesNothing) {
  const auto model = load(kKinds[0]);
  auto own = open(model);
  run(*own, text(100));
  const std::string path = folder_.file("s");
  ASSERT_TRUE(save_session(path, *own, {text(100)}).ok());
  const Bytes before = read(path);
  ASSERT_GT(before.size(), 8192u);
  struct rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {4096, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = save_session(path, *own, {text(100)});
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("cannot write"));
  EXPECT_EQ(read(path), before) << "the former file has to stay";
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_.path()))
    ++files;
  EXPECT_EQ(files, 2u) << "the artifact and the session alone";
  EXPECT_EQ(save_session(folder_.file("no/such/s"), *own, {text(100)}).code(), StatusCode::kIo);
}

} // namespace
} // namespace cortiq::runtime
