/** The completion scripts. The program is already quoted. */

/** For bash 3.2 and newer, with or without bash-completion. */
const bash = (program: string): string => `# pen completion for bash
_pen() {
  COMPREPLY=()
  # Bash also breaks words at ":" and "="; here they are put together again, up to the cursor.
  local -a typed=() starts=()
  local line=\${COMP_LINE:0:COMP_POINT} word='' space i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    space=\${line%%[![:space:]]*}
    line=\${line#"$space"}
    if ((i == COMP_CWORD)); then word=$line; fi
    if [[ -n $space || $i -eq 0 ]]; then
      typed+=("$word")
      starts+=("$i")
    else
      typed[\${#typed[@]}-1]+=$word
    fi
    line=\${line#"$word"}
  done
  # What bash leaves standing, because it replaces the last piece only.
  local current=\${typed[\${#typed[@]}-1]} kept kind='' value about
  if [[ $word == : || $word == = ]]; then kept=$current; else kept=\${current%"$word"}; fi
  while IFS=$'\\t' read -r value about; do
    if [[ -z $kind ]]; then
      kind=$value
      i=$about
    else
      COMPREPLY+=("\${value#"$kept"}")
    fi
  done < <(${program} __complete -- "\${typed[@]:1}" 2>/dev/null </dev/null)
  case $kind in
    words)
      if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
      ;;
    paths)
      if [[ $word == = ]]; then word=''; fi
      compopt -o default 2>/dev/null || while IFS= read -r value; do
        COMPREPLY+=("$value")
      done < <(compgen -f -- "$word")
      ;;
    command)
      if ((i >= \${#typed[@]} - 1)); then
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -c -- "$word")
      elif declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "\${starts[i]}"
      elif declare -F _command_offset >/dev/null; then
        _command_offset "\${starts[i]}"
      else
        compopt -o default 2>/dev/null || while IFS= read -r value; do
          COMPREPLY+=("$value")
        done < <(compgen -f -- "$word")
      fi
      ;;
  esac
}
complete -F _pen pen
`

/** Sourced after compinit, or saved as `_pen` in a directory of fpath. */
const zsh = (program: string): string => `#compdef pen
# pen completion for zsh
_pen() {
  local -a lines values shown
  local kind line
  lines=("\${(@f)$(${program} __complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null </dev/null)}")
  kind=\${lines[1]}
  case $kind in
    words)
      for line in "\${(@)lines[2,-1]}"; do
        values+=("\${line%%$'\\t'*}")
        shown+=("\${line%%$'\\t'*}\${line:+  \${line#*$'\\t'}}")
      done
      (( $#values )) || return 1
      if [[ \${values[1]} == *= ]]; then
        compadd -S '' -l -d shown -a values
      else
        compadd -l -d shown -a values
      fi
      ;;
    paths)
      compset -P '--*='
      _files
      ;;
    command*)
      local -i at=\${kind#*$'\\t'}
      words=("\${(@)words[at+1,-1]}")
      (( CURRENT -= at ))
      _normal
      ;;
  esac
}
if [[ \${zsh_eval_context[-1]} == loadautofunc ]]; then
  _pen "$@"
else
  compdef _pen pen
fi
`

/** For fish 3 and newer. */
const fish = (program: string): string => `# pen completion for fish
function __pen_complete
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l current (commandline -ct)
    set -l lines (${program} __complete -- $typed "$current" 2>/dev/null </dev/null)
    set -l kind (string split \\t -- $lines[1])
    switch $kind[1]
        case words
            set -e lines[1]
            printf '%s\\n' $lines
        case paths
            set -l flag (string match -r -- '^--[a-z-]+=' "$current")
            set -l path (string replace -r -- '^--[a-z-]+=' '' "$current")
            for found in (__fish_complete_path "$path")
                printf '%s\\n' "$flag$found"
            end
        case command
            set -l inner
            for word in $typed[$kind[2]..]
                set -a inner (string escape -- $word)
            end
            complete -C (string join ' ' -- $inner $current)
    end
end
complete -c pen -f -a '(__pen_complete)'
`

const inPosix = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
const inFish = (word: string): string => `'${word.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** By shell: the script that calls this program, given as words. */
export const SCRIPTS: Readonly<Record<string, (program: readonly string[]) => string>> = {
  bash: program => bash(program.map(inPosix).join(' ')),
  zsh: program => zsh(program.map(inPosix).join(' ')),
  fish: program => fish(program.map(inFish).join(' ')),
}

export const SHELLS = Object.keys(SCRIPTS)
