/** Sourced after compinit, or saved as `_pen` in a directory of fpath. The program is already quoted. */
export const script = (program: string): string => `#compdef pen
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
