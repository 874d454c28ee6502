#!/usr/bin/env bash
# What the scripts here share, who source it: the private server, the plug-in, and the options of a test's server.

# shellcheck disable=SC2154  # of who sources this
readonly env_file=$checkout/target/mariadb/current/env
# PEREGRINE_PLUGINS: another build of the plug-in.
readonly plugins=${PEREGRINE_PLUGINS:-$checkout/target/plugin}

say() { printf '%s\n' "$*"; }

require_server() {
    if ! [ -e "$env_file" ]; then
        say "No MariaDB here, so the plug-in's tests do not run; see: mariadb/setup/server"
        exit 0
    fi
    # shellcheck source=/dev/null
    . "$env_file"
    if [ -n "$MARIADB_LIBRARY_PATH" ]; then
        export LD_LIBRARY_PATH=$MARIADB_LIBRARY_PATH${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
}

require_plugin() {
    [ -e "$plugins/ha_peregrine.so" ] || {
        say "The plug-in is not built; run: make plugin" >&2
        exit 1
    }
}

link_all_but() {
    local except=$1 from=$2 to=$3 entry
    for entry in "$from"/*; do
        [ "${entry##*/}" = "$except" ] || ln -sfn "$entry" "$to/${entry##*/}"
    done
}

server_options() {
    options=(--mysqld=--plugin-maturity=experimental "--mysqld=--ignore-db-dirs=#peregrine")
    if [ -e "$plugins/ha_peregrine.so" ]; then
        options+=(--mysqld=--plugin-dir="$plugins" --mysqld=--plugin-load-add=ha_peregrine)
    fi
    [ "$(id -u)" -ne 0 ] || options+=(--mysqld=--user=root)
}
