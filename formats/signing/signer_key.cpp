#include "formats/signing/signer_key.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/mapped_file.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// A key file is 65 bytes; what is far beyond that is something else.
constexpr size_t kLargestKeyFile = 256;

int hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return hex_digit(c) >= 0; });
}

/// The text of a key file without the white space around it; empty where it is too long to be one.
StatusOr<std::string> read_digits(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kLargestKeyFile)
    return std::string();
  std::string text(file.bytes().begin(), file.bytes().end());
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

Status no_key_file(const std::string& path) {
  return invalid(quote(path) + " is no key file: it has to hold 64 hexadecimal digits");
}

/// Writes `digits` to a file that did not exist.
Status write_new_file(const std::string& path, mode_t mode, const std::string& digits) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0 && errno == EEXIST)
    return invalid(quote(path) + " exists, and keys are never written over; name another file");
  if (fd < 0)
    return io_error("cannot create " + quote(path) + ": " + std::strerror(errno));
  const std::string line = digits + "\n";
  // Whatever the umask: neither more nor less than what was asked for.
  const bool written = fchmod(fd, mode) == 0 &&
                       write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (written)
    return {};
  unlink(path.c_str());
  return io_error("cannot write " + quote(path) + ": " + std::strerror(error));
}

} // namespace

std::string hex_digits(std::span<const uint8_t> bytes) {
  std::string out;
  for (const uint8_t byte : bytes)
    for (const int digit : {byte >> 4, byte & 15})
      out += "0123456789abcdef"[digit];
  return out;
}

Status parse_hex_digits(std::string_view hex, const std::string& what, std::span<uint8_t> out) {
  if (hex.size() != 2 * out.size() || !all_digits(hex))
    return invalid(what + " is " + quote(hex) + ", not " + std::to_string(2 * out.size()) + " hexadecimal digits");
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
  return {};
}

StatusOr<SignerKey> parse_signer_key(std::string_view hex, const std::string& what) {
  SignerKey key;
  CORTIQ_RETURN_IF_ERROR(parse_hex_digits(hex, what, key));
  return key;
}

std::string signer_key_hex(const SignerKey& key) {
  return hex_digits(key);
}

StatusOr<SignerKey> read_public_key(const std::string& word, const std::string& what) {
  if (all_digits(word)) // too many or too few of them are told as such
    return parse_signer_key(word, what);
  StatusOr<std::string> text = read_digits(word);
  if (!text.ok())
    return text.status().with_prefix(what + " takes 64 hexadecimal digits or a file that holds them");
  if (text->size() != 2 * sizeof(SignerKey) || !all_digits(*text))
    return no_key_file(word).with_prefix(what);
  return parse_signer_key(*text, what);
}

Status other_signer(const SignerKey& signer, const SignerKey& required) {
  SignerKey of_seed;
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> secret;
  crypto_sign_seed_keypair(of_seed.data(), secret.data(), required.data());
  sodium_memzero(secret.data(), secret.size());
  if (of_seed == signer)
    return invalid("what is required is the signer's secret key; give the public one, the file that ends in .pub");
  return invalid("it is signed by " + signer_key_hex(signer) + ", required is another key");
}

StatusOr<SignerKey> read_key_file(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return invalid(quote(path) +
                   " can be read or changed by others than its owner, so its key may be known: make a new " +
                   "one with cortiq-skill make-key, or chmod 600 it");
  CORTIQ_ASSIGN_OR_RETURN(std::string text, read_digits(path));
  StatusOr<SignerKey> seed = parse_signer_key(text, "");
  sodium_memzero(text.data(), text.size());
  if (!seed.ok()) // without its content: it may be nearly a key
    return no_key_file(path);
  return seed;
}

StatusOr<SignerKey> make_key_file(const std::string& path) {
  if (sodium_init() < 0)
    return internal_error("the cryptographic library cannot start");
  SignerKey seed, key;
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> secret;
  randombytes_buf(seed.data(), seed.size());
  crypto_sign_seed_keypair(key.data(), secret.data(), seed.data());
  sodium_memzero(secret.data(), secret.size());
  std::string digits = hex_digits(seed);
  sodium_memzero(seed.data(), seed.size());
  // The public key first: it is the one that may be lost.
  const std::string beside = path + ".pub";
  Status status = access(path.c_str(), F_OK) == 0
                      ? invalid(quote(path) + " exists, and keys are never written over; name another file")
                      : write_new_file(beside, 0644, hex_digits(key));
  if (status.ok()) {
    status = write_new_file(path, 0600, digits);
    if (!status.ok())
      unlink(beside.c_str());
  }
  sodium_memzero(digits.data(), digits.size());
  if (!status.ok())
    return status;
  return key;
}

} // namespace cortiq::formats
