#!/usr/bin/env bash
# What the scripts here share; they source it. Every point is run as it is
# written, and gets one line: held or not, and its figure.

readonly work=target/verify
# shellcheck disable=SC2034  # for who sources this
readonly peregrine=target/release/peregrine
# Divides sizes and times, to try a script out: no proof then.
readonly scale=${SCALE:-1}
# The last point; who has another number of them says so before.
readonly last_point=${last_point:-7}
mkdir -p "$work"

# What the point that is being run has to say.
figure=

scaled() { echo $(($1 / scale > 0 ? $1 / scale : 1)); }

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# Runs a command with its output in a log; keeps its status and its time in seconds.
logged() {
    local log=$1 start=$SECONDS status=0
    shift
    "$@" >"$log" 2>&1 </dev/null || status=$?
    # shellcheck disable=SC2034  # for who calls
    took=$((SECONDS - start))
    return "$status"
}

# The result lines of logs, as one line.
lines() { grep -hE '^(held|NOT HELD|caught|NOT CAUGHT)' "$@" | tr '\n' ';' | sed 's/;$//; s/;/; /g'; }

# By name, so that shellcheck sees who is called.
run_point() {
    case $1 in
    1) point_1 ;;
    2) point_2 ;;
    3) point_3 ;;
    4) point_4 ;;
    5) point_5 ;;
    6) point_6 ;;
    7) point_7 ;;
    8) point_8 ;;
    esac
}

# Runs the points asked for; without one, all.
run_points() {
    local point points all_held=0
    for point in "$@"; do
        if ! [[ $point =~ ^[1-9]$ ]] || [ "$point" -gt "$last_point" ]; then
            usage >&2
            exit 64
        fi
    done
    points=("$@")
    [ $# -gt 0 ] || mapfile -t points < <(seq "$last_point")
    for point in "${points[@]}"; do
        figure="no figure, see $work"
        if run_point "$point"; then
            printf '%s  held      %s\n' "$point" "$figure"
        else
            printf '%s  NOT HELD  %s\n' "$point" "$figure"
            all_held=1
        fi
    done
    return "$all_held"
}
