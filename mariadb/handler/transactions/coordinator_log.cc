/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Recovery with tc.log, the server's log of decisions about transactions in several engines, after
   a crash.

   The server writes a transaction's number to tc.log once all its engines have prepared it. After a
   crash it should commit in all engines the transactions whose numbers it finds. Since 10.6 it
   reads the file, but then rolls back every prepared transaction (sql/handler.cc,
   xarecover_handlerton: it looks a number up only when the coordinator is the binary log). A
   transaction committed in one engine could so be missing in the other. So the plug-in commits the
   transactions of the file before the server rolls them back. The server correctly rolls back those
   that the file does not name. */

#include "transactions/two_phase.h"
#include "errors.h"

#include <unordered_set>
#include <vector>

namespace peregrine {

/* TC_LOG_MMAP in sql/log.cc: 4 bytes of magic number, then the number of engines; from the eighth
   byte on, numbers of transactions, 0 for a free place. */
static constexpr uchar kMagic[] = {254, 0x23, 0x05, 0x74};
static constexpr size_t kHeader = sizeof(my_xid);

/* As many as the server asks for at once. */
static constexpr uint kNamesAtOnce = MAX_XID_LIST_SIZE;

static bool read_log(std::string *bytes) {
  char name[FN_REFLEN];
  fn_format(name, opt_tc_log_file, mysql_data_home, "", MY_UNPACK_FILENAME);
  FILE *file = fopen(name, "rb");
  if (!file) return false; /* no file: the server ended in an orderly way */
  char buffer[16384];
  size_t length;
  while ((length = fread(buffer, 1, sizeof buffer, file)) > 0) bytes->append(buffer, length);
  bool whole = !ferror(file);
  fclose(file);
  return whole && bytes->size() >= kHeader && !memcmp(bytes->data(), kMagic, sizeof kMagic);
}

bool has_decisions() {
  std::string bytes;
  return read_log(&bytes);
}

static bool is_coordinator() {
  return !mysqld_server_started && !opt_bin_log && !tc_heuristic_recover;
}

bool comes_before_other_engines() {
  static bool asked = false;
  std::string bytes;
  if (asked || !is_coordinator() || !read_log(&bytes)) return false;
  asked = true;
  return true;
}

/* Commits the transactions that an engine has prepared under one of the numbers. Names also contain
   the server's id, which may have changed, so only the numbers are compared, as in the server. */
static void commit_prepared(handlerton *in, const std::unordered_set<my_xid> &decided) {
  /* InnoDB lists all names again if they fit; otherwise it continues the list. */
  std::vector<XID> names(kNamesAtOnce);
  for (bool again = true; again;) {
    const int found = in->recover(in, names.data(), kNamesAtOnce);
    again = false;
    for (int i = 0; i < found; i++) {
      if (!decided.count(names[i].get_my_xid())) continue;
      again = in->commit_by_xid(in, &names[i]) == 0 || again;
    }
    again = again && found == static_cast<int>(kNamesAtOnce);
  }
}

void commit_what_was_decided() {
  std::string bytes;
  if (!is_coordinator() || !read_log(&bytes)) return;
  std::unordered_set<my_xid> decided;
  for (size_t at = kHeader; at + sizeof(my_xid) <= bytes.size(); at += sizeof(my_xid)) {
    my_xid number;
    memcpy(&number, bytes.data() + at, sizeof number);
    if (number) decided.insert(number);
  }
  if (decided.empty()) return;
  for (st_plugin_int *plugin : hton2plugin) {
    if (!plugin || plugin->state != PLUGIN_IS_READY) continue;
    handlerton *other = static_cast<handlerton *>(plugin->data);
    if (other && other != hton && other->recover && other->commit_by_xid)
      commit_prepared(other, decided);
  }
  commit_prepared(hton, decided);
}

}  // namespace peregrine
