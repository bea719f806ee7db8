#include "autotune/command/console/completion.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace coconet {
namespace {

/// What bash and zsh have in common: their text goes where "@CASES@" stands. A candidate is
/// "word<TAB>what it does"; ":file" stands for paths, ":sizes" for paths behind an @.
constexpr char kCandidates[] =
    R"sh(# What can stand there: of a command, behind a flag ("-" for flags, "" for words), with
# this last word that is no flag, and so many of these behind the command.
_coconet_candidates() {
  case "$1:$2" in
@CASES@  esac
}
)sh";

constexpr char kBash[] = R"sh(
_coconet() {
  local cur=${COMP_WORDS[COMP_CWORD]} command= flag= program= prefix= line word files= i count=0
  COMPREPLY=()
  # Where "=" ends words, "--dtype=f" is the three words "--dtype", "=" and "f".
  if [[ $cur == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 1]} cur=
  elif ((COMP_CWORD >= 2)) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $cur == --*=* ]]; then
    flag=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}
  elif [[ $cur == -* ]]; then
    flag=-
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word == -* || $word == = || ${COMP_WORDS[i - 1]} == = ]] && continue
    if [[ -z $command ]]; then command=$word; else program=$word count=$((count + 1)); fi
  done
  while IFS= read -r line; do
    case $line in
      :file) files=: ;;
      :sizes) [[ $cur != @* ]] || files=@ ;;
      *)
        word=${line%%$'\t'*}
        [[ $word != "$cur"* ]] || COMPREPLY+=("$prefix$word")
        ;;
    esac
  done < <(_coconet_candidates "$command" "$flag" "$program" "$count")
  if [[ $files == : ]]; then
    while IFS= read -r line; do COMPREPLY+=("$prefix$line"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  elif [[ $files == @ ]]; then
    while IFS= read -r line; do COMPREPLY+=("$prefix$line"); done < <(compgen -P @ -f -- "${cur#@}")
  fi
  [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _coconet coconet
)sh";

constexpr char kZsh[] = R"sh(
_coconet() {
  local cur=${words[CURRENT]} command= flag= program= line word does files= i count=0
  local -a plain valued
  if [[ $cur == --*=* ]]; then
    flag=${cur%%=*}
    compset -P 1 '*='
    cur=${cur#*=}
  elif [[ $cur == -* ]]; then
    flag=-
  fi
  for ((i = 2; i < CURRENT; ++i)); do
    word=${words[i]}
    [[ $word == -* ]] && continue
    if [[ -z $command ]]; then command=$word; else program=$word count=$((count + 1)); fi
  done
  while IFS= read -r line; do
    case $line in
      :file) files=: ;;
      :sizes) [[ $cur != @* ]] || files=@ ;;
      *)
        word=${${line%%$'\t'*}//:/\\:}
        does=
        [[ $line != *$'\t'* ]] || does=:${line#*$'\t'}
        if [[ $word == *= ]]; then valued+=("$word$does"); else plain+=("$word$does"); fi
        ;;
    esac
  done < <(_coconet_candidates "$command" "$flag" "$program" "$count")
  ((${#valued} == 0)) || _describe -t flags flag valued -S ''
  ((${#plain} == 0)) || _describe -t words word plain
  [[ $files != : ]] || _files
  if [[ $files == @ ]]; then
    compset -P @
    _files
  fi
}
if [[ ${funcstack[1]} == _coconet ]]; then _coconet "$@"; else compdef _coconet coconet; fi
)sh";

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

/// The candidates of a context, one per line when it runs.
class Candidates {
 public:
  Candidates& Add(absl::string_view word, absl::string_view does = "") {
    absl::StrAppend(&words_, " \\\n        ",
                    Quoted(does.empty() ? std::string(word) : absl::StrCat(word, "\t", does)));
    return *this;
  }
  Candidates& AddAll(absl::Span<const std::string> words) {
    for (const std::string& word : words) Add(word);
    return *this;
  }
  bool empty() const { return words_.empty(); }
  /// A command of shells.
  std::string Text() const { return absl::StrCat("printf '%s\\n'", words_); }

 private:
  std::string words_;
};

std::string CaseOf(absl::string_view pattern, absl::string_view commands) {
  return absl::StrCat("    ", Quoted(pattern), ")\n      ", commands, "\n      ;;\n");
}

/// `of(program)` where that is the last word, for all programs that have some.
template <class Of>
std::string ByProgram(absl::Span<const ProgramHelp> programs, Of of) {
  std::string text = "case \"$3\" in\n";
  for (const ProgramHelp& program : programs) {
    const Candidates candidates = of(program);
    if (!candidates.empty())
      absl::StrAppend(&text, "        ", Quoted(program.name), ") ", candidates.Text(), " ;;\n");
  }
  return absl::StrCat(text, "      esac");
}

/// The first words of what a flag does, on a line of a list.
std::string Shortened(absl::string_view does) {
  constexpr size_t kMost = 60;
  if (does.size() <= kMost) return std::string(does);
  return absl::StrCat(does.substr(0, does.rfind(' ', kMost)), " ...");
}

std::string FlagCases(const CommandHelp& command, const Completion& of) {
  Candidates flags;
  std::string cases;
  for (const FlagHelp& flag : command.flags) {
    const bool has_value = flag.takes != Takes::kNothing;
    flags.Add(absl::StrCat("--", flag.name, has_value ? "=" : ""), Shortened(flag.does));
    Candidates values;
    values.AddAll(flag.words);
    if (flag.takes == Takes::kFile) values.Add(":file");
    if (flag.takes == Takes::kSizes) values.AddAll(of.size_lists).Add(":sizes");
    const std::string pattern = absl::StrCat(command.name, ":--", flag.name);
    if (flag.takes == Takes::kPreset) {
      absl::StrAppend(&cases, CaseOf(pattern, ByProgram(of.programs, [](const ProgramHelp& p) {
                                       return Candidates().AddAll(p.presets);
                                     })));
    } else if (!values.empty()) {
      absl::StrAppend(&cases, CaseOf(pattern, values.Text()));
    }
  }
  std::string listed = flags.Text();
  if (command.takes_files) {
    absl::StrAppend(&listed, "\n      ", ByProgram(of.programs, [](const ProgramHelp& p) {
      Candidates sizes;
      for (const std::string& size : p.sizes)
        if (size != "N") sizes.Add(absl::StrCat("--", size, "="), "a size");
      return sizes;
    }));
  }
  return absl::StrCat(CaseOf(absl::StrCat(command.name, ":-"), listed), cases);
}

std::string WordCase(const CommandHelp& command, const Completion& of) {
  Candidates programs;
  if (command.takes_programs) {
    for (const ProgramHelp& program : of.programs) programs.Add(program.name, program.does);
  }
  if (command.takes_all) programs.Add("all");
  if (command.takes_files) programs.Add(":file");
  std::vector<std::string> by_place;  // commands, by the number of words before
  if (!command.words.empty()) by_place.push_back(Candidates().AddAll(command.words).Text());
  if (!programs.empty()) by_place.push_back(programs.Text());
  if (by_place.empty()) return "";
  std::string text = "case \"$4\" in\n";
  for (size_t place = 0; place < by_place.size(); ++place)
    absl::StrAppend(&text, "        ", place, ") ", by_place[place], " ;;\n");
  return CaseOf(absl::StrCat(command.name, ":"), absl::StrCat(text, "      esac"));
}

}  // namespace

std::string CompletionScript(Shell shell, const Completion& of) {
  Candidates commands;
  for (const CommandHelp& command : of.commands) commands.Add(command.name, command.does);
  std::string cases = CaseOf(":", commands.Text());
  absl::StrAppend(&cases, CaseOf(":-", Candidates().Add("--help").Add("--version").Text()));
  for (const CommandHelp& command : of.commands)
    absl::StrAppend(&cases, WordCase(command, of), FlagCases(command, of));
  const bool is_bash = shell == Shell::kBash;
  return absl::StrCat(is_bash ? "# Completion of coconet for bash.\n" : "#compdef coconet\n",
                      absl::StrReplaceAll(kCandidates, {{"@CASES@", cases}}),
                      is_bash ? kBash : kZsh);
}

}  // namespace coconet
