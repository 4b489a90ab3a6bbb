#include "runtime/session/saved_session.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "formats/artifact/artifact_hash.h"
#include "formats/atomic_file.h"
#include "formats/checked_math.h"
#include "formats/quote.h"
#include "runtime/loader/load.h"
#include "runtime/loader/verified_root.h"
#include "runtime/session/saved_session_generated.h"
#include "runtime/session/session_state.h"

namespace cortiq::runtime {
namespace {

using formats::Hash256;
using formats::Hasher256;

struct Prefix {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  uint64_t header_bytes;
  Hash256 header_hash;
};
static_assert(sizeof(Prefix) == 56);
constexpr char kMagic[8] = {'C', 'O', 'R', 'T', 'I', 'Q', 'S', '\x01'};
constexpr uint64_t kHashed = 24;               // bytes of the prefix that the header's hash covers
constexpr uint64_t kAlignment = 64;            // of the payload
constexpr uint64_t kMostHeader = 256ull << 20; // tokens and a conversation of any length that makes sense
constexpr uint64_t kBuffer = 128 << 10;

std::span<const uint8_t> bytes_of(const void* data, uint64_t size) {
  return {static_cast<const uint8_t*>(data), size};
}

Hash256 header_hash(const Prefix& prefix, std::span<const uint8_t> header) {
  Hasher256 hasher;
  hasher.add(bytes_of(&prefix, kHashed));
  hasher.add(header);
  return hasher.finish();
}

/// Bytes of the caches and states; nothing where that is no number.
std::optional<uint64_t> payload_bytes(const SessionState& state) {
  std::optional<uint64_t> total = 0;
  for (const KvShape& layer : state.layers) {
    const uint64_t groups = formats::ceil_div(state.position, kKvGroupPositions) - //
                            std::min(state.first(layer), state.position) / kKvGroupPositions;
    const std::optional<uint64_t> group =
        formats::checked_add(layer.key_group_bytes(state.kv_type),
                             formats::checked_mul(kKvGroupPositions, layer.value_row_bytes(state.kv_type)));
    total = formats::checked_add(total, formats::checked_mul(formats::checked_mul(layer.kv_heads, groups), group));
  }
  for (const uint64_t size : state.state_sizes)
    total = formats::checked_add(total, formats::checked_mul(size, sizeof(float)));
  return total;
}

/// Calls `visit(layer, place, from, to)` for every group that is held, `place` being where it stands and [from, to) its
/// positions in the group.
template <class Visit>
Status each_group(const SessionState& state, Visit visit) {
  for (uint64_t l = 0; l < state.layers.size(); ++l) {
    const KvShape& layer = state.layers[l];
    const uint64_t first = state.first(layer);
    for (uint64_t head = 0; head < layer.kv_heads; ++head)
      for (uint64_t begin = first / kKvGroupPositions * kKvGroupPositions; begin < state.position;
           begin += kKvGroupPositions)
        CORTIQ_RETURN_IF_ERROR(visit(layer, state.place(l, head, begin / kKvGroupPositions),
                                     std::max(first, begin) - begin,
                                     std::min(state.position - begin, kKvGroupPositions)));
  }
  return {};
}

/// Writes in large pieces and hashes what it writes.
class Writer {
public:
  explicit Writer(formats::AtomicFile& file) : file_(file) { buffer_.reserve(kBuffer); }
  Status add(std::span<const uint8_t> bytes) {
    if (buffer_.size() + bytes.size() > kBuffer)
      CORTIQ_RETURN_IF_ERROR(flush());
    if (bytes.size() > kBuffer)
      return hand_over(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  StatusOr<Hash256> finish() {
    CORTIQ_RETURN_IF_ERROR(flush());
    return hasher_.finish();
  }

private:
  Status flush() {
    const Status status = hand_over(buffer_);
    buffer_.clear();
    return status;
  }
  Status hand_over(std::span<const uint8_t> bytes) {
    hasher_.add(bytes);
    return file_.write(bytes);
  }

  formats::AtomicFile& file_;
  Hasher256 hasher_;
  std::vector<uint8_t> buffer_;
};

/// Reads a file from a place on, in large pieces, and hashes what it read.
class Reader {
public:
  Reader(int fd, uint64_t offset) : fd_(fd), offset_(offset) {}
  Status take(uint8_t* into, uint64_t count) {
    while (count != 0) {
      if (at_ == end_)
        CORTIQ_RETURN_IF_ERROR(fill());
      const uint64_t some = std::min(count, end_ - at_);
      std::memcpy(into, buffer_.data() + at_, some);
      hasher_.add({into, some});
      at_ += some;
      into += some;
      count -= some;
    }
    return {};
  }
  Hash256 hash() { return hasher_.finish(); }

private:
  Status fill() {
    buffer_.resize(kBuffer);
    ssize_t got;
    do
      got = pread(fd_, buffer_.data(), buffer_.size(), static_cast<off_t>(offset_));
    while (got < 0 && errno == EINTR);
    if (got < 0)
      return io_error(std::string("it cannot be read: ") + std::strerror(errno));
    if (got == 0)
      return io_error("it became shorter while it was read");
    offset_ += static_cast<uint64_t>(got);
    at_ = 0;
    end_ = static_cast<uint64_t>(got);
    return {};
  }

  int fd_;
  uint64_t offset_, at_ = 0, end_ = 0;
  std::vector<uint8_t> buffer_;
  Hasher256 hasher_;
};

/// Whether the last token was generated; see SessionState::turns.
bool ends_generated(std::span<const uint64_t> turns) {
  return turns.size() % 2 != 0;
}

saved::HeaderT describe(const Session& session, const SessionState& state, const SavedSequence& sequence) {
  saved::HeaderT out;
  const auto& artifact = session.model().artifact().file.header().header_hash;
  out.artifact.assign(std::begin(artifact), std::end(artifact));
  out.target = session.model().info().target;
  out.kv_type = kv_type_name(state.kv_type);
  const formats::OverlayCatalog& catalog = session.model().overlay();
  const formats::OverlaySelection selection = session.selection();
  for (const formats::OverlayShare& share : selection.shares) {
    auto& row = out.shares.emplace_back(std::make_unique<saved::ShareT>());
    row->skill = catalog.skills[share.skill].id;
    row->weight = share.weight;
  }
  if (selection.mask)
    out.mask = catalog.masks[*selection.mask].name;
  out.tokens = sequence.tokens;
  out.position = state.position;
  out.furthest = state.furthest;
  out.turns = state.turns;
  if (sequence.tokens.size() > state.position && sequence.last_generated != ends_generated(state.turns))
    out.turns.push_back(state.position);
  for (const KvShape& layer : state.layers)
    out.layers.emplace_back(layer.kv_heads, layer.k_dim, layer.v_dim, layer.window, layer.ring);
  out.states.assign(state.state_sizes.begin(), state.state_sizes.end());
  out.payload_bytes = payload_bytes(state).value_or(0);
  out.draws = sequence.draws;
  out.conversation = sequence.conversation;
  return out;
}

Status write_payload(const SessionState& state, Writer& writer) {
  std::vector<uint8_t> group;
  CORTIQ_RETURN_IF_ERROR(
      each_group(state, [&](const KvShape& layer, KvGroupPlace place, uint64_t from, uint64_t to) -> Status {
        const uint64_t keys = layer.key_group_bytes(state.kv_type);
        group.assign(keys + kKvGroupPositions * layer.value_row_bytes(state.kv_type), 0);
        copy_positions(layer, state.kv_type, {group.data(), group.data() + keys}, place, from, to);
        return writer.add(group);
      }));
  for (size_t i = 0; i < state.states.size(); ++i)
    CORTIQ_RETURN_IF_ERROR(writer.add(bytes_of(state.states[i], state.state_sizes[i] * sizeof(float))));
  return {};
}

/// "--skill a", "--blend a:0.7,b:0.3", with the mask: the words that put a selection in force.
std::string overlay_words(const saved::Header& header) {
  const bool blend = header.shares()->size() > 1;
  std::string words = blend ? "--blend " : "--skill ";
  if (header.shares()->size() == 0)
    words += "none";
  for (size_t i = 0; i < header.shares()->size(); ++i) {
    const saved::Share& share = *header.shares()->Get(static_cast<flatbuffers::uoffset_t>(i));
    char weight[40] = "";
    if (blend)
      std::snprintf(weight, sizeof(weight), ":%.9g", static_cast<double>(share.weight()));
    words += i == 0 ? "" : ",";
    words += formats::printable(share.skill()->str());
    words += weight;
  }
  words += " --task ";
  words += header.mask() ? formats::printable(header.mask()->str()) : "none";
  return words;
}

bool same_overlay(const saved::Header& header, const formats::OverlayCatalog& catalog,
                  const formats::OverlaySelection& selection) {
  if (header.shares()->size() != selection.shares.size() || (header.mask() != nullptr) != selection.mask.has_value())
    return false;
  if (selection.mask && header.mask()->str() != catalog.masks[*selection.mask].name)
    return false;
  for (size_t i = 0; i < selection.shares.size(); ++i) {
    const saved::Share& share = *header.shares()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (share.skill()->str() != catalog.skills[selection.shares[i].skill].id ||
        std::bit_cast<uint32_t>(share.weight()) != std::bit_cast<uint32_t>(selection.shares[i].weight))
      return false;
  }
  return true;
}

bool same_shapes(const saved::Header& header, const SessionState& state) {
  const auto equal = [](const KvShape& a, const saved::Layer* b) {
    return a.kv_heads == b->kv_heads() && a.k_dim == b->k_dim() && a.v_dim == b->v_dim() && a.window == b->window() &&
           a.ring == b->ring();
  };
  return std::equal(state.layers.begin(), state.layers.end(), header.layers()->begin(), header.layers()->end(),
                    equal) &&
         std::equal(state.state_sizes.begin(), state.state_sizes.end(), header.states()->begin(),
                    header.states()->end());
}

Status damaged(const std::string& what) {
  return invalid("the saved session is damaged (" + what + "); save it again");
}

} // namespace

Status save_session(const std::string& path, Session& session, const SavedSequence& sequence) {
  if (session.position() > sequence.tokens.size() || sequence.tokens.size() - session.position() > 1)
    return internal_error("a session of " + std::to_string(session.position()) + " tokens cannot be saved as one of " +
                          std::to_string(sequence.tokens.size()));
  CORTIQ_ASSIGN_OR_RETURN(const SessionState state, session.state());
  const saved::HeaderT described = describe(session, state, sequence);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(saved::Header::Pack(builder, &described));
  Prefix prefix{};
  std::memcpy(prefix.magic, kMagic, sizeof(kMagic));
  prefix.version = kSavedSessionVersion;
  prefix.header_bytes = builder.GetSize();
  prefix.header_hash = header_hash(prefix, builder.GetBufferSpan());
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(bytes_of(&prefix, sizeof(prefix))));
  CORTIQ_RETURN_IF_ERROR(file.write(bytes_of(builder.GetBufferPointer(), builder.GetSize())));
  Writer writer(file);
  const std::vector<uint8_t> padding((kAlignment - file.size() % kAlignment) % kAlignment);
  CORTIQ_RETURN_IF_ERROR(writer.add(padding));
  CORTIQ_RETURN_IF_ERROR(write_payload(state, writer));
  CORTIQ_ASSIGN_OR_RETURN(const Hash256 hash, writer.finish());
  CORTIQ_RETURN_IF_ERROR(file.write(hash));
  return file.commit();
}

SavedSession::SavedSession(SavedSession&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), header_bytes_(std::move(other.header_bytes_)),
      turns_(std::move(other.turns_)), sequence_(std::move(other.sequence_)) {}

SavedSession& SavedSession::operator=(SavedSession&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(header_bytes_, other.header_bytes_);
  std::swap(turns_, other.turns_);
  std::swap(sequence_, other.sequence_);
  return *this;
}

SavedSession::~SavedSession() {
  if (fd_ >= 0)
    close(fd_);
}

const saved::Header& SavedSession::header() const {
  return *saved::GetHeader(header_bytes_.data());
}

uint64_t SavedSession::position() const {
  return header().position();
}

StatusOr<SavedSession> SavedSession::open(const std::string& path) {
  SavedSession out;
  out.path_ = path;
  // Without waiting: a pipe is no file, and says so.
  out.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info{};
  if (out.fd_ < 0 || fstat(out.fd_, &info) != 0)
    return io_error("cannot read the saved session " + formats::quote(path) + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return invalid(formats::quote(path) + " is not a file; --load-session takes what --save-session wrote");
  if (const Status status = out.read(static_cast<uint64_t>(info.st_size)); !status.ok())
    return status.with_prefix(formats::quote(path));
  return out;
}

Status SavedSession::read(uint64_t file_bytes) {
  Reader reader(fd_, 0);
  Prefix prefix{};
  if (file_bytes >= sizeof(prefix))
    CORTIQ_RETURN_IF_ERROR(reader.take(reinterpret_cast<uint8_t*>(&prefix), sizeof(prefix)));
  if (std::memcmp(prefix.magic, kMagic, sizeof(kMagic)) != 0)
    return invalid("it is not a saved session; --load-session takes what --save-session wrote");
  if (prefix.version != kSavedSessionVersion)
    return unsupported("it is a saved session of version " + std::to_string(prefix.version) +
                       ", this program reads version " + std::to_string(kSavedSessionVersion) + "; save it again");
  if (prefix.header_bytes > std::min(kMostHeader, file_bytes - sizeof(prefix)))
    return damaged("its header does not fit it");
  header_bytes_.resize(prefix.header_bytes);
  CORTIQ_RETURN_IF_ERROR(reader.take(header_bytes_.data(), header_bytes_.size()));
  if (header_hash(prefix, header_bytes_) != prefix.header_hash)
    return damaged("the hash of its header differs");
  CORTIQ_RETURN_IF_ERROR(verified_root<saved::Header>(header_bytes_, "header").status());
  const saved::Header& h = header();
  if (h.artifact()->size() != sizeof(Hash256) || h.position() > h.tokens()->size() ||
      h.tokens()->size() - h.position() > 1 || h.furthest() < h.position())
    return damaged("its header contradicts itself");
  const uint64_t before = *formats::checked_round_up(sizeof(prefix) + prefix.header_bytes, kAlignment);
  if (formats::checked_add(h.payload_bytes(), before + sizeof(Hash256)) != file_bytes)
    return damaged("it has " + std::to_string(file_bytes) + " bytes and should have others");
  sequence_.tokens.assign(h.tokens()->begin(), h.tokens()->end());
  if (h.turns())
    turns_.assign(h.turns()->begin(), h.turns()->end());
  if (!std::ranges::is_sorted(turns_, std::ranges::less_equal()) ||
      (!turns_.empty() && turns_.back() >= h.tokens()->size()))
    return damaged("its header contradicts itself");
  sequence_.last_generated = ends_generated(turns_);
  sequence_.draws = h.draws();
  sequence_.conversation = h.conversation() ? h.conversation()->str() : "";
  return {};
}

Status SavedSession::check_fit(Session& session) const {
  const saved::Header& h = header();
  const Model& model = session.model();
  const auto& artifact = model.artifact().file.header().header_hash;
  if (!std::equal(h.artifact()->begin(), h.artifact()->end(), std::begin(artifact), std::end(artifact)))
    return invalid("it was saved with another artifact; give the one that it was saved with, or begin a new session");
  if (h.target()->str() != model.info().target)
    return invalid("it was saved under the target " + formats::quote(h.target()->str()) + ", and " +
                   formats::quote(model.info().target) + " is running; give --target " +
                   formats::printable(h.target()->str()) + " where this machine can run it, or begin a new session");
  if (h.kv_type()->str() != kv_type_name(session.kv_type()))
    return invalid("it was saved with a cache of " + formats::printable(h.kv_type()->str()) + ", and this one is of " +
                   kv_type_name(session.kv_type()) + "; give --kv " + formats::printable(h.kv_type()->str()));
  if (!same_overlay(h, model.overlay(), session.selection()))
    return invalid("it was saved under another skill or mask than is in force; give " + overlay_words(h));
  if (h.furthest() > session.max_context())
    return invalid("it reaches " + std::to_string(h.furthest()) + " positions, and the context holds " +
                   std::to_string(session.max_context()) + "; give --max-context " + std::to_string(h.furthest()) +
                   " or more");
  for (const uint32_t id : sequence_.tokens)
    if (id >= session.vocab())
      return damaged("token id " + std::to_string(id) + " is outside the vocabulary");
  return {};
}

Status SavedSession::restore(Session& session) const {
  if (const Status status = check_fit(session); !status.ok())
    return status.with_prefix(formats::quote(path_));
  Status status = read_payload(session);
  if (!status.ok())
    session.reset();
  return status.with_prefix(formats::quote(path_));
}

Status SavedSession::read_payload(Session& session) const {
  const saved::Header& h = header();
  CORTIQ_ASSIGN_OR_RETURN(const SessionState state, session.make_room(h.position(), h.furthest()));
  if (!same_shapes(h, state) || payload_bytes(state) != h.payload_bytes())
    return damaged("its caches and states are not the model's");
  const uint64_t header_end = sizeof(Prefix) + header_bytes_.size();
  Reader reader(fd_, header_end);
  uint8_t padding[kAlignment];
  CORTIQ_RETURN_IF_ERROR(reader.take(padding, (kAlignment - header_end % kAlignment) % kAlignment));
  std::vector<uint8_t> group;
  CORTIQ_RETURN_IF_ERROR(
      each_group(state, [&](const KvShape& layer, KvGroupPlace place, uint64_t from, uint64_t to) -> Status {
        const uint64_t keys = layer.key_group_bytes(state.kv_type);
        group.resize(keys + kKvGroupPositions * layer.value_row_bytes(state.kv_type));
        CORTIQ_RETURN_IF_ERROR(reader.take(group.data(), group.size()));
        if (!all_finite(layer, state.kv_type, {group.data(), group.data() + keys}))
          return damaged("a key or value is not finite");
        copy_positions(layer, state.kv_type, place, {group.data(), group.data() + keys}, from, to);
        return {};
      }));
  for (size_t i = 0; i < state.states.size(); ++i) {
    const std::span<float> numbers(state.states[i], state.state_sizes[i]);
    CORTIQ_RETURN_IF_ERROR(reader.take(reinterpret_cast<uint8_t*>(numbers.data()), numbers.size_bytes()));
    if (!all_finite(numbers))
      return damaged("a recurrent state is not finite");
  }
  const Hash256 hash = reader.hash();
  Hash256 stored;
  CORTIQ_RETURN_IF_ERROR(reader.take(stored.data(), stored.size()));
  if (hash != stored)
    return damaged("the hash of its content differs");
  session.adopt(std::span(sequence_.tokens).first(h.position()), h.furthest(), turns_);
  return {};
}

} // namespace cortiq::runtime
