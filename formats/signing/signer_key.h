#pragma once

// Keys of signers: ed25519, as 64 hexadecimal digits wherever people meet them.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/status.h"

namespace cortiq::formats {

/// A public key, or the seed that a pair of keys follows from.
using SignerKey = std::array<uint8_t, 32>;

/// `bytes` as digits in lower case.
std::string hex_digits(std::span<const uint8_t> bytes);
/// Fills `out` from twice as many digits of either case; `what` names them in the message.
Status parse_hex_digits(std::string_view hex, const std::string& what, std::span<uint8_t> out);

/// A key from 64 hexadecimal digits of either case; `what` names it in the message.
StatusOr<SignerKey> parse_signer_key(std::string_view hex, const std::string& what);
/// Its 64 digits in lower case.
std::string signer_key_hex(const SignerKey& key);

/// What an option that requires a signer's key was given: its 64 digits, or the name of a file that holds them. `what`
/// names the option in the message.
StatusOr<SignerKey> read_public_key(const std::string& word, const std::string& what);

/// Why a file that `signer` signed does not do where `required` is asked for. The digits of `required` are no part of
/// it: whoever gave a secret key by mistake would find it in every log.
Status other_signer(const SignerKey& signer, const SignerKey& required);

/// The seed of a key file: 64 digits with white space around them. A file that others than its owner can read is
/// refused: its key may be known to them. The content is never part of a message.
StatusOr<SignerKey> read_key_file(const std::string& path);

/// Makes a pair of keys: the seed in the new file `path` that only its owner can read, the public key in "<path>.pub".
/// Files that exist are never replaced. Gives the public key.
StatusOr<SignerKey> make_key_file(const std::string& path);

} // namespace cortiq::formats
