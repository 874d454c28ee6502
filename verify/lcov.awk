# How much of a project's lines was run, and of the ways that its branches can go, where those were counted: from what
# llvm-cov exports as lcov. Files and modules of tests don't count, nor those whose path matches `but`.
#   -v missing=FILE           where the lines and branches go that nothing has run
#   -v lines=N -v branches=N  percent of all that hold (branches: 0 where they were not counted)
#   -v of=TEXT                what all of it is
# A line a file of fewer lines than that, one a folder, one for all. Exit status 1: not held.
function percent(have, all) { return all ? 100 * have / all : 100 }

# The file at `path`, by its name below its crate's src, and the lines of it that are tests.
function begin(path,    text, number, end) {
    delete test
    file = path
    sub(/.*\/src\//, "", file)
    match(path, /(mariadb\/)?[^\/]*\/src\//)
    crate = substr(path, RSTART, RLENGTH - 5)
    folder = crate (file ~ /\// ? "/" substr(file, 1, index(file, "/") - 1) : "")
    counts = file !~ /tests/ && (but == "" || path !~ but)
    number = 0
    end = ""
    while ((getline text <path) > 0) {
        number++
        if (end == "" && text ~ /^ *#\[cfg\(test\)\]$/) {
            match(text, /^ */)
            end = "^" substr(text, 1, RLENGTH) "(}|[a-z].*;)$"
        }
        if (end != "") test[number] = 1
        if (end != "" && text ~ end) end = ""
    }
    close(path)
    have = all = have_ways = ways = 0
}

/^SF:/ { begin(substr($0, 4)) }
/^DA:/ && counts {
    split(substr($0, 4), line, ",")
    if (line[1] in test) next
    all++
    if (line[2] > 0) have++
    else print crate "/src/" file ":" line[1] >missing
}
/^BRDA:/ && counts {
    split(substr($0, 6), way, ",")
    if (way[1] in test) next
    ways++
    if (way[4] + 0 > 0) have_ways++
    else print crate "/src/" file ":" way[1] " branch " way[2] (way[3] ? " false" : " true") >missing
}
/^end_of_record/ && counts {
    folder_have[folder] += have; folder_all[folder] += all
    folder_have_ways[folder] += have_ways; folder_ways[folder] += ways
    total_have += have; total_all += all
    total_have_ways += have_ways; total_ways += ways
    if (percent(have, all) < lines)
        printf "  %s/src/%s: %.1f %% of %d lines\n", crate, file, percent(have, all), all
}
function branches_of(have, all) { return branches ? sprintf(", %.1f %% of %d branches", percent(have, all), all) : "" }
END {
    for (folder in folder_all)
        printf "  all of %s: %.1f %% of %d lines%s\n", folder, percent(folder_have[folder], folder_all[folder]),
            folder_all[folder], branches_of(folder_have_ways[folder], folder_ways[folder]) | "sort"
    close("sort")
    held = total_all && percent(total_have, total_all) >= lines && percent(total_have_ways, total_ways) >= branches &&
        (!branches || total_ways)
    printf "%s: %.1f %% of %d lines%s of %s covered\n", (held ? "held" : "NOT HELD"), percent(total_have, total_all),
        total_all, branches_of(total_have_ways, total_ways), of
    exit !held
}
