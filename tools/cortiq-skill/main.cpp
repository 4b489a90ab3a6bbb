// cortiq-skill: skills and masks of CMF files, signatures of these and of artifacts. Exit codes: 0 done, 2 bad input or
// bad command line, 1 a bug of ours.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/tool_main.h"
#include "runtime/cli/word.h"
#include "tools/cortiq-skill/commands.h"

namespace {

using cortiq::Status;

constexpr char kProgram[] = "cortiq-skill";

struct Words {
  std::string file, id, task, out, base, key;
  std::vector<std::string> skills;
  bool json = false, embed = false;
};

/// Adds the commands to `app`; the one that is given sets `work`.
void declare(CLI::App& app, Words& w, std::function<Status()>& work) {
  auto command = [&](const char* name, const char* help, std::function<Status()> run) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->callback([&work, run] { work = run; });
    return sub;
  };
  auto optional = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  auto file = [&](CLI::App* sub, const char* help) { sub->add_option("FILE", w.file, help)->required(); };
  auto out = [&](CLI::App* sub) {
    sub->add_option("-o,--output", w.out, "file to write")->required()->type_name("OUT.cmf");
  };
  auto what = [&](CLI::App* sub) {
    CLI::Option_group* one = sub->add_option_group("What");
    one->add_option("--id", w.id, "id of the skill");
    one->add_option("--task", w.task, "name of the mask");
    one->require_option(1);
  };

  CLI::App* list =
      command("list", "show the skills and masks of a CMF file", [&] { return cortiq::skill::list(w.file, w.json); });
  file(list, "a CMF model or standalone skill file");
  list->add_flag("--json", w.json, "as one JSON object");

  CLI::App* attach = command("attach", "put standalone files of skills or masks onto the model that they were cut from",
                             [&] { return cortiq::skill::attach(w.file, w.skills, w.embed, w.out); });
  attach->add_option("BASE", w.file, "the base model")->required();
  attach->add_option("SKILL", w.skills, "the skill or mask file; several with --embed")->required();
  attach->add_flag("--embed", w.embed, "keep the base's tensors too: a skill is then chosen with cortiq-run --skill");
  out(attach);

  CLI::App* detach = command("detach", "remove a skill or a mask from a model", [&] {
    return w.task.empty() ? cortiq::skill::detach(w.file, w.id, w.out)
                          : cortiq::skill::detach_mask(w.file, w.task, w.out);
  });
  file(detach, "a CMF model");
  what(detach);
  out(detach);

  CLI::App* extract = command("extract", "write a skill or a mask of a model as a standalone file", [&, optional] {
    return w.task.empty() ? cortiq::skill::extract(w.file, w.id, optional(w.base), w.out)
                          : cortiq::skill::extract_mask(w.file, w.task, optional(w.base), w.out);
  });
  file(extract, "a CMF model with the skill or mask in it; with --base also one fine-tuned from it");
  what(extract);
  extract->add_option("--base", w.base, "the model to bind the skill to (default: FILE)")->type_name("BASE.cmf");
  out(extract);

  CLI::App* make_key =
      command("make-key", "make a pair of ed25519 keys: KEYFILE, which only its owner can read, and KEYFILE.pub",
              [&] { return cortiq::skill::make_key(w.key); });
  make_key->add_option("KEYFILE", w.key, "file to make; one that exists is never replaced")->required();

  CLI::App* sign =
      command("sign", "sign a file, beside it as FILE.sig", [&] { return cortiq::skill::sign(w.file, w.key); });
  file(sign, "a CMF file or an artifact");
  sign->add_option("--key", w.key,
                   "key file that make-key made: a 32-byte ed25519 seed as 64 hexadecimal digits, readable by its "
                   "owner only; the "
                   "public key, which --require-key takes, is printed")
      ->required()
      ->type_name("KEYFILE")
      ->check(cortiq::runtime::cli::some_word);

  CLI::App* verify = command("verify", "check every hash of a file, and its signature",
                             [&, optional] { return cortiq::skill::verify(w.file, optional(w.key)); });
  file(verify, "a CMF file or an artifact");
  verify
      ->add_option("--key", w.key,
                   "refuse what is not signed with this ed25519 key: 64 digits, or the file that holds them")
      ->type_name("KEY")
      ->check(cortiq::runtime::cli::some_word);
  app.require_subcommand(1);
}

cortiq::StatusOr<int> run(int argc, char** argv) {
  CLI::App app("Skills and masks of CMF files; keys, and signatures of CMF files and artifacts.", kProgram);
  app.set_version_flag("--version", "cortiq-skill " CORTIQ_VERSION " (CMF 2)");
  Words words;
  std::function<Status()> work;
  declare(app, words, work);
  if (const std::optional<int> end = cortiq::runtime::cli::parse_command_line(app, kProgram, argc, argv))
    return *end;
  CORTIQ_RETURN_IF_ERROR(work());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  return cortiq::runtime::cli::run_tool(kProgram, "this file; a machine with more can change it",
                                        [&] { return run(argc, argv); });
}
