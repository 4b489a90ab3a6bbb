#pragma once

// What cortiq-skill does, one function a command. Each reads whole files and writes a new one, never onto its input.

#include <optional>
#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::skill {

/// Prints the skills and masks of `file`; as one JSON object with `json`.
Status list(const std::string& file, bool json);

/// Puts standalone skill files onto the model that they were cut from (specification 4.7). The result is a model whose
/// tensors are the skill's where it has them; with `embed` they stand beside the base's, the skill is chosen when the
/// model runs, and there may be several: with one attached the result is no longer what the others name as their base.
/// Files of masks alone are attached too, always beside what there is; a skill put beside the base's tensors brings the
/// mask that it runs with. What applies when no task is named does not change.
Status attach(const std::string& base, const std::vector<std::string>& skills, bool embed, const std::string& out);

/// Removes skill `id` from `file`: its tensors and its record. Masks stay.
Status detach(const std::string& file, const std::string& id, const std::string& out);

/// Removes mask `task` from `file`, unless a skill runs with it.
Status detach_mask(const std::string& file, const std::string& task, const std::string& out);

/// Writes skill `id` of `file` as a standalone skill file bound to `base`: the tensors "skill.ID.…", or where there are
/// none those that differ from the base's. Without `base` the skill is bound to `file` itself. With it `file` may be a
/// model without any skill, fine-tuned from `base`: the skill is what it changed.
Status extract(const std::string& file, const std::string& id, const std::optional<std::string>& base,
               const std::string& out);

/// Writes mask `task` of `file` as a standalone file without tensors, bound to `base` or to `file` itself.
Status extract_mask(const std::string& file, const std::string& task, const std::optional<std::string>& base,
                    const std::string& out);

/// Makes a key file that only its owner can read, and "<path>.pub" beside it; prints the public key.
Status make_key(const std::string& path);

/// Signs an artifact, or each file of a model, with the key of `key_file`.
Status sign(const std::string& file, const std::string& key_file);

/// Checks every hash of a model or an artifact, and the signatures; without a required key a file without signature
/// passes.
Status verify(const std::string& file, const std::optional<std::string>& required_key);

} // namespace cortiq::skill
