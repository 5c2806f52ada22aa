/** For bash 3.2 and newer, with or without bash-completion. The program is already quoted. */
export const script = (program: string): string => `# pen completion for bash
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
