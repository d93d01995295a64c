"""`completion`: scripts that ask this program what could come next, so they never go stale."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command

BASH = """\
_@prog@_complete() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" words
    words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    # Bash cuts words at equals signs; --flag=value is one word for the program.
    if [[ ${#words[@]} -ge 2 && "${words[-2]}" == "=" ]]; then
        words=("${words[@]:0:${#words[@]}-3}" "${words[-3]}=${words[-1]}")
    elif [[ ${#words[@]} -ge 2 && "${words[-1]}" == "=" ]]; then
        words=("${words[@]:0:${#words[@]}-2}" "${words[-2]}=")
    fi
    COMPREPLY=($(@prog@ __complete "${words[@]}" 2>/dev/null))
    if [[ "${words[-1]}" == --*=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#*=}")
    fi
}
complete -o default -F _@prog@_complete @prog@
"""
# As a file of $fpath the script is the body of the function on its first use; sourced, it has to register it.
ZSH = """\
#compdef @prog@
_@prog@() {
    local -a found
    found=("${(@f)$(@prog@ __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
if [[ "${funcstack[1]}" == "_@prog@" ]]; then
    _@prog@ "$@"
else
    compdef _@prog@ @prog@
fi
"""
FISH = """\
function __@prog@_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (@prog@ __complete $words[2..-1] 2>/dev/null | string match -v '')
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c @prog@ -f -a '(__@prog@_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

COMMAND = Command(
    "completion",
    "Print a shell completion script",
    long="Prints a script for bash, zsh or fish that completes commands, flags and their values.",
    examples=(
        ("This shell only, bash or zsh", "source <({prog} completion bash)"),
        ("For good, bash", "{prog} completion bash > ~/.local/share/bash-completion/completions/{prog}"),
        ("For good, zsh", '{prog} completion zsh > "${fpath[1]}/_{prog}"'),
        ("For good, fish", "{prog} completion fish > ~/.config/fish/completions/{prog}.fish"),
    ),
    args=(Arg("SHELL", "bash, zsh or fish"),),
    handler="hcp.cli.completion:run",
)


def run(call: Call) -> int:
    from hcp.cli.engine.command import UsageError

    shell = call.arg("SHELL")
    if shell not in SCRIPTS:
        raise UsageError(f'there is no completion for the shell "{shell}"', hint="allowed: bash, zsh, fish")
    print(SCRIPTS[shell].replace("@prog@", call.prog), end="")
    return 0
