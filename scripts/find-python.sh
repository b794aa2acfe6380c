#!/bin/sh
# Find a Python that this project supports and that can make virtual environments.
#
#   find-python.sh        print the path of the one to use: $PYTHON if set, else python3 if it fits,
#                         else the newest that fits, in PATH or among pyenv's versions
#   find-python.sh --all  print "<major.minor> <path>" for every supported version on the machine
#
# The supported versions stand in `requires-python` of pyproject.toml; tests/packaging compares the two.
set -u

supported="3.13 3.12 3.11"
oldest="3.11"
newest="3.13"

# Print "<major.minor> <yes|no: can make environments> <full version> <path>", or nothing if it does not run.
probe() {
    "$1" -c '
import sys
try:
    import ensurepip, venv
    usable = "yes"
except ImportError:
    usable = "no"
print("%d.%d %s %d.%d.%d %s" % (sys.version_info[:2] + (usable,) + sys.version_info[:3] + (sys.executable,)))
' 2>/dev/null
}

is_supported() {
    case " $supported " in *" $1 "*) return 0 ;; esac
    return 1
}

pyenv_root=${PYENV_ROOT:-}
[ -n "$pyenv_root" ] || pyenv_root=$(pyenv root 2>/dev/null) || pyenv_root=
[ -n "$pyenv_root" ] || pyenv_root=${HOME:-/nonexistent}/.pyenv

# All interpreters that may be of version $1, one a line.
candidates() {
    old_ifs=$IFS
    IFS=:
    for dir in ${PATH:-}; do
        [ -x "$dir/python$1" ] && printf '%s\n' "$dir/python$1"
    done
    IFS=$old_ifs
    for path in "$pyenv_root/versions/$1".*/bin/python3; do
        [ -x "$path" ] && printf '%s\n' "$path"
    done
}

# Print the path of a usable interpreter of version $1, if the machine has one.
usable() {
    candidates "$1" | while IFS= read -r path; do
        found=$(probe "$path") || continue
        # shellcheck disable=SC2086
        set -- $1 $found
        [ "${2:-}" = "$1" ] && [ "$3" = yes ] || continue
        printf '%s\n' "${found#* * * }"
        break
    done
}

refuse() {
    printf '%s\n' "$1" >&2
    printf '%s\n' "cerebras-ext needs Python $oldest to $newest. Install one of these, or name one you have:" >&2
    printf '%s\n' "    make PYTHON=/path/to/python$newest ${GOAL:-demo}" >&2
    exit 1
}

if [ "${1:-}" = --all ]; then
    for version in $supported; do
        path=$(usable "$version")
        [ -z "$path" ] || printf '%s %s\n' "$version" "$path"
    done
    exit 0
fi

first=${PYTHON:-python3}
found=$(probe "$first") || found=
version=${found%% *}
rest=${found#* * }
if [ -n "$found" ] && is_supported "$version"; then
    case $found in
        *" yes "*) printf '%s\n' "${rest#* }" && exit 0 ;;
    esac
    complaint="Python ${rest%% *} (${rest#* }) cannot make virtual environments: its venv or ensurepip module is missing (on Debian and Ubuntu: apt install python3-venv)."
elif [ -n "$found" ]; then
    complaint="Found Python ${rest%% *} (${rest#* }), which is not supported."
elif [ -n "${PYTHON:-}" ]; then
    complaint="PYTHON=$PYTHON does not run."
else
    complaint="No python3 was found."
fi
[ -z "${PYTHON:-}" ] || refuse "$complaint"

for version in $supported; do
    path=$(usable "$version")
    if [ -n "$path" ]; then
        printf '%s\n' "$path"
        exit 0
    fi
done
refuse "$complaint"
