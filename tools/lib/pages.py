"""The manual page and the shell completions of one program, from its own option tree: pages.py PROGRAM VERSION FOLDER.

PROGRAM --help-json prints the tree (runtime/cli/describe_options.h says in which form). Written are, below FOLDER, man/man1/NAME.1 and what
bash, zsh and fish read. The same program gives the same bytes.
"""
import json
import os
import re
import subprocess
import sys

PROGRAMS = ("cortiq-bench", "cortiq-compile", "cortiq-convert", "cortiq-inspect", "cortiq-opt", "cortiq-run", "cortiq-serve", "cortiq-skill")
# Values that are names of files, by what the programs call them.
FILES = re.compile(r"FILE|DIR|FOLDER|MODEL|IN|OUT|.*\.\w+|PATH", re.I)


def is_file(option):
    return bool(FILES.fullmatch(option["value"]))


# ---- manual pages, in the macros of man(7) ----

def roff(text):
    """Text as roff prints it: no escapes, no requests, and hyphens that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def sentence(text):
    text = text.strip()
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def option_entry(option):
    names = ", ".join("\\fB" + roff(name) + "\\fR" for name in option["names"])
    value = " \\fI" + roff("|".join(option["choices"]) or option["value"]) + "\\fR" if option["value"] else ""
    default = f" (default: {option['default']})" if option["default"] not in ("", "[]") else ""
    return [".TP", names + value, roff(option["description"] + default) or "\\&"]


def option_sections(tree, macro):
    groups = {}
    for option in tree["options"]:
        groups.setdefault(option["group"], []).append(option)
    lines = []
    for group, options in groups.items():
        if len(groups) > 1:
            lines.append(f"{macro} {roff(group)}")
        for option in options:
            lines += option_entry(option)
    return lines


def synopsis(tree, name):
    words = [".B " + roff(name), "[OPTIONS]"] if tree["options"] else [".B " + roff(name)]
    words += [roff(place["name"] if place["required"] else f"[{place['name']}]") for place in tree["positionals"]]
    if tree["commands"]:
        words.append("COMMAND ...")
    return words[:1] + [" ".join(words[1:])] if len(words) > 1 else words


def paragraphs(text):
    return [line for part in re.split(r"\n\s*\n", text.strip()) for line in (".PP", roff(" ".join(part.split())))]


def manual(tree, version):
    name = tree["name"]
    ends = [line for line in tree["footer"].splitlines() if re.match(r"Exit (codes|status)", line)]
    notes = "\n".join(line for line in tree["footer"].splitlines() if line not in ends)
    lines = [f'.TH {roff(name).upper()} 1 "" "cortiq {version}" "cortiq manual"', ".SH NAME",
             f"{roff(name)} \\- {roff(sentence(tree['description']).split('. ')[0].split(chr(10))[0].rstrip('.'))}", ".SH SYNOPSIS"]
    lines += synopsis(tree, name)
    lines += [".SH DESCRIPTION", *paragraphs(tree["description"])[1:]]
    if tree["positionals"]:
        for place in tree["positionals"]:
            lines += [".TP", f".I {roff(place['name'])}", roff(place["description"])]
    if tree["commands"]:
        lines.append(".SH COMMANDS")
        for command in tree["commands"]:
            lines += [f".SS {roff(command['name'])}", roff(command["description"])]
            lines += [".PP", *synopsis(command, f"{name} {command['name']}")]
            for place in command["positionals"]:
                lines += [".TP", f".I {roff(place['name'])}", roff(place["description"])]
            for option in command["options"]:
                if "--help" not in option["names"]:
                    lines += option_entry(option)
    if tree["options"]:
        lines += [".SH OPTIONS", *option_sections(tree, ".SS")]
    if notes.strip():
        lines += [".SH NOTES", *paragraphs(notes)[1:]]
    if ends:
        lines += [".SH EXIT STATUS", *(roff(line) for line in ends)]
    others = [f".BR {roff(other)} (1)" for other in PROGRAMS if other != name]
    lines += [".SH SEE ALSO", *(line + "," for line in others[:-1]), others[-1]]
    return "\n".join(lines) + "\n"


# ---- bash ----

def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash_values(tree):
    """The arms of `case $option in`, for options that take a value."""
    lines = []
    for option in tree["options"]:
        if option["value"]:
            arm = "|".join(option["names"])
            if option["choices"]:
                lines.append(f"    {arm}) words={quoted(' '.join(option['choices']))} ;;")
            else:
                lines.append(f"    {arm}) {'files=1' if is_file(option) else 'return'} ;;")
    return lines


def bash_body(tree):
    words = " ".join(name for option in tree["options"] for name in option["names"])
    return ["  case $option in", *bash_values(tree), "    *)", f"      if [[ $word == -* ]]; then words={quoted(words)}; else files=1; fi ;;", "  esac"]


def bash(tree):
    name = tree["name"]
    function = "_" + name.replace("-", "_")
    lines = [f"# Completion of {name} for bash.", f"{function}() {{",
             "  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} words= files=",
             "  # bash divides --option=value into three words.",
             "  if [[ $word == = ]]; then word=; elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi"]
    if tree["commands"]:
        lines += ["  local command= i", "  for ((i = 1; i < COMP_CWORD; ++i)); do", "    case ${COMP_WORDS[i]} in",
                  f"      {'|'.join(command['name'] for command in tree['commands'])}) command=${{COMP_WORDS[i]}}; break ;;", "    esac", "  done",
                  "  case $command in"]
        for command in tree["commands"]:
            lines += [f"  {command['name']})", *bash_body(command), "  ;;"]
        words = " ".join([command["name"] for command in tree["commands"]] + [name for option in tree["options"] for name in option["names"]])
        lines += [f"  *) words={quoted(words)} ;;", "  esac"]
    else:
        lines += bash_body(tree)
    lines += ["  if [[ $files ]]; then", "    compopt -o filenames 2>/dev/null", '    mapfile -t COMPREPLY < <(compgen -f -- "$word")', "  else",
              '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")', "  fi", "}", f"complete -F {function} {name}"]
    return "\n".join(lines) + "\n"


# ---- zsh ----

def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", " ".join(text.split()))


def zsh_arguments(tree, indent):
    lines = []
    for option in tree["options"]:
        action = ""
        if option["value"]:
            what = f"({' '.join(option['choices'])})" if option["choices"] else "_files" if is_file(option) else ""
            action = f":{zsh_text(option['value'])}:{what}"
        together = f"({' '.join(option['names'])})" if len(option["names"]) > 1 else ""
        for name in option["names"]:
            lines.append(indent + quoted(f"{together}{name}[{zsh_text(option['description'])}]{action}") + " \\")
    return lines


def zsh(tree):
    name = tree["name"]
    lines = [f"#compdef {name}"]
    if not tree["commands"]:
        return "\n".join(lines + ["_arguments -S \\", *zsh_arguments(tree, "  "), "  '*:file:_files'"]) + "\n"
    described = " ".join(quoted(f"{command['name']}:{zsh_text(command['description'])}") for command in tree["commands"])
    lines += ["local line state", "_arguments -C \\", *zsh_arguments(tree, "  "), "  '1: :->command' '*::argument:->arguments'", "case $state in",
              f"  command) local -a commands=({described}); _describe command commands ;;", "  arguments)", "    case $line[1] in"]
    for command in tree["commands"]:
        lines += [f"      {command['name']}) _arguments -S \\", *zsh_arguments(command, "        "), "        '*:file:_files' ;;"]
    return "\n".join(lines + ["    esac ;;", "esac"]) + "\n"


# ---- fish ----

def fish_options(tree, name, condition):
    lines = []
    for option in tree["options"]:
        names = " ".join(("-l " + each[2:]) if each.startswith("--") else ("-s " if len(each) == 2 else "-o ") + each[1:] for each in option["names"])
        value = ""
        if option["value"]:
            value = f" -x -a {quoted(' '.join(option['choices']))}" if option["choices"] else " -r -F" if is_file(option) else " -x"
        text = " ".join(option["description"].split()).replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c {name}{condition} {names}{value} -d '{text}'")
    return lines


def fish(tree):
    name = tree["name"]
    lines = [f"# Completion of {name} for fish."]
    lines += fish_options(tree, name, "")
    for command in tree["commands"]:
        text = command["description"].replace("'", "\\'")
        lines.append(f"complete -c {name} -n __fish_use_subcommand -a {command['name']} -d '{text}'")
        lines += fish_options(command, name, f" -n '__fish_seen_subcommand_from {command['name']}'")
    return "\n".join(lines) + "\n"


def main(program, version, folder):
    tree = json.loads(subprocess.run([program, "--help-json"], check=True, capture_output=True, text=True).stdout)
    name = tree["name"]
    for path, text in ((f"man/man1/{name}.1", manual(tree, version)), (f"bash-completion/completions/{name}", bash(tree)),
                       (f"zsh/site-functions/_{name}", zsh(tree)), (f"fish/vendor_completions.d/{name}.fish", fish(tree))):
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
