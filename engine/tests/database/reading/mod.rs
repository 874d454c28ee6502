//! Results of reads, and the pages that they need not read.

pub(crate) mod aggregates;
pub(crate) mod ascii;
mod bounded_scans;
mod first_reads;
mod index_scans;
mod judged_again;
mod long_searches;
mod mini_pages;
mod passed_rows;
mod read_ahead;
mod row_counts;
mod searched_again;
mod stopped_cursors;
mod sums_that_stay;
