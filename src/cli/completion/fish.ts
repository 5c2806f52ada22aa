/** For fish 3 and newer. The program is already quoted. */
export const script = (program: string): string => `# pen completion for fish
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
