/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

/* Compares sort keys with the server's own comparison, for every collation of the server, on
   random strings. Loaded as a function:

     CREATE FUNCTION peregrine_check_collation RETURNS STRING SONAME 'peregrine_collation_check.so';
     SELECT collation_name, peregrine_check_collation(id, 20000) FROM information_schema.collations;

   The answer is "ok" or the first pair of strings that is ordered otherwise. */

#include "tables/collation.h"

#include <random>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<uchar>;

/* Characters that collations treat in special ways, and ordinary ones. */
constexpr my_wc_t kCharacters[] = {
    ' ',    ' ',    ' ',    'a',    'A',    'b',    'B',    'c',     'C',     'h',    'H',
    's',    'l',    'L',    'j',    'z',    'Z',    '0',    '9',     '-',     '_',    '.',
    0x00,   0x01,   0x09,   0x0A,   0x1F,   0x7F,   0xA0,   0xDF,    0xE4,    0xC4,   0xE9,
    0xE8,   0xF1,   0xFC,   0xE5,   0xC6,   0xE6,   0x131,  0x130,   0x17F,   0x10D,  0x161,
    0x1C6,  0x301,  0x308,  0x327,  0x3B1,  0x3C3,  0x3C2,  0x430,   0x410,   0x451,  0x5D0,
    0x627,  0xE01,  0xE40,  0xE48,  0xE2D,  0x200B, 0x200D, 0x3042,  0x30A2,  0x304B, 0x3099,
    0x4E00, 0x5B57, 0xAC00, 0xFDFA, 0xFB01, 0xFFFD, 0xFFFF, 0x1F600, 0x10400, 0x1D11E};

Bytes random_string(CHARSET_INFO *charset, std::mt19937 &random, bool ordinary) {
  Bytes bytes;
  size_t count = random() % 7;
  if (random() % 50 == 0) count = 100 + random() % 60;
  bool spaces = random() % 8 == 0;
  for (size_t i = 0; i < count; i++) {
    uchar to[8];
    my_wc_t wc = spaces && random() % 5 ? ' ' : kCharacters[random() % array_elements(kCharacters)];
    if (random() % 6 == 0) wc = random() % 0x300;
    if (random() % 40 == 0) wc = random() % 0xD7FF;
    if (ordinary) {
      static const char few[] = "  aAbBdDgG09\t\n-.";
      wc = static_cast<uchar>(few[random() % (sizeof few - 1)]);
    }
    /* The server takes a zero byte for the end of a Thai string that is not padded. */
    if (wc == 0 && strcmp(charset->coll_name.str, "tis620_thai_nopad_ci") == 0) continue;
    int n = charset->cset->wc_mb(charset, wc, to, to + sizeof to);
    if (n > 0) bytes.insert(bytes.end(), to, to + n);
  }
  return bytes;
}

/* Returns a string similar to another one, so that long common prefixes and equal strings occur. */
Bytes neighbour(CHARSET_INFO *charset, const Bytes &from, std::mt19937 &random, bool ordinary) {
  const char *begin = reinterpret_cast<const char *>(from.data());
  size_t characters = charset->cset->numchars(charset, begin, begin + from.size());
  size_t keep = characters ? random() % (characters + 1) : 0;
  size_t cut = MY_MIN(from.size(), charset->charpos(begin, begin + from.size(), keep));
  Bytes to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(cut));
  Bytes tail = random_string(charset, random, ordinary);
  if (tail.size() > 20 && random() % 2) tail.clear();
  to.insert(to.end(), tail.begin(), tail.end());
  if (random() % 3 == 0) {
    Bytes rest(from.begin() + static_cast<std::ptrdiff_t>(cut), from.end());
    to.insert(to.end(), rest.begin(), rest.end());
  }
  return to;
}

/* Pads a value to the form in which a CHAR column stores it. */
void fill_up(CHARSET_INFO *charset, Bytes &value, size_t characters) {
  const char *begin = reinterpret_cast<const char *>(value.data());
  size_t has = charset->cset->numchars(charset, begin, begin + value.size());
  if (has >= characters) return;
  size_t old = value.size();
  value.resize(old + (characters - has) * charset->mbminlen);
  charset->fill(reinterpret_cast<char *>(value.data()) + old, value.size() - old, ' ');
}

/* Trims a value to the form in which a CHAR column gives it to the engine. */
void trim(CHARSET_INFO *charset, Bytes &value) {
  value.resize(charset->lengthsp(reinterpret_cast<const char *>(value.data()), value.size()));
}

Bytes sort_key(uint32_t collation, const Bytes &value, uint32_t prefix) {
  Bytes key(16);
  size_t n = peregrine::peregrine_plugin_sort_key(collation, value.data(), value.size(), prefix,
                                                  key.data(), key.size());
  if (n > key.size()) {
    key.resize(n);
    peregrine::peregrine_plugin_sort_key(collation, value.data(), value.size(), prefix, key.data(),
                                         key.size());
  }
  key.resize(n);
  return key;
}

int sign(int n) {
  return n < 0 ? -1 : n > 0;
}

std::string hex(const Bytes &bytes) {
  std::string text;
  char digits[4];
  for (uchar b : bytes) {
    snprintf(digits, sizeof digits, "%02X", b);
    text += digits;
  }
  return text.empty() ? "''" : text;
}

bool starts_with(const Bytes &a, const Bytes &b) {
  return a.size() < b.size() && std::equal(a.begin(), a.end(), b.begin());
}

std::string check(CHARSET_INFO *charset, longlong pairs) {
  constexpr size_t kCharactersOfColumn = 400;
  const bool is_thai = strncmp(charset->coll_name.str, "tis620", 6) == 0;
  std::mt19937 random(charset->number);
  size_t longest = 0, total = 0, source = 0;
  for (longlong i = 0; i < pairs; i++) {
    /* In collations that pad, and in those with several levels, the server's comparison of CHAR
       values with characters of no weight, or of several weights, depends on the width of the
       column. */
    const bool padded = !is_thai && random() % 4 == 0;
    const bool ordinary = padded && (!(charset->state & MY_CS_NOPAD) ||
                                     charset->levels_for_order != MY_CS_COLL_LEVELS_S1);
    Bytes a = random_string(charset, random, ordinary);
    Bytes b = random() % 2 ? random_string(charset, random, ordinary)
                           : neighbour(charset, a, random, ordinary);
    const uint32_t prefix = !padded && random() % 4 == 0 ? random() % 6 + 1 : UINT32_MAX;
    if (padded) {
      trim(charset, a);
      trim(charset, b);
    }
    uint32_t collation = peregrine::engine_collation(charset, kCharactersOfColumn, padded);
    Bytes x = sort_key(collation, a, prefix), y = sort_key(collation, b, prefix);
    Bytes ca = a, cb = b;
    if (prefix != UINT32_MAX) {
      for (Bytes *c : {&ca, &cb}) {
        const char *begin = reinterpret_cast<const char *>(c->data());
        c->resize(MY_MIN(c->size(), charset->charpos(begin, begin + c->size(), prefix)));
      }
    }
    size_t characters = prefix == UINT32_MAX ? kCharactersOfColumn : prefix;
    if (padded) {
      fill_up(charset, ca, characters);
      fill_up(charset, cb, characters);
    }
    int theirs =
        padded ? charset->coll->strnncollsp_nchars(charset, ca.data(), ca.size(), cb.data(),
                                                   cb.size(), characters, 0)
               : charset->coll->strnncollsp(charset, ca.data(), ca.size(), cb.data(), cb.size());
    int ours = x < y ? -1 : x > y;
    if (sign(theirs) != ours || starts_with(x, y) || starts_with(y, x))
      return "WRONG: " + hex(ca) + " and " + hex(cb) + (padded ? " (CHAR)" : "") + ": " +
             std::to_string(sign(theirs)) + ", by keys " + hex(x) + " and " + hex(y);
    longest = MY_MAX(longest, x.size());
    total += x.size();
    source += a.size();
  }
  char text[80];
  snprintf(text, sizeof text, "ok, %.2f bytes a byte",
           static_cast<double>(total) / static_cast<double>(source + 1));
  return text;
}

}  // namespace

extern "C" my_bool peregrine_check_collation_init(UDF_INIT *init, UDF_ARGS *args, char *message) {
  if (args->arg_count != 2 || args->arg_type[0] != INT_RESULT || args->arg_type[1] != INT_RESULT) {
    strcpy(message, "number of a collation and number of pairs expected");
    return 1;
  }
  init->ptr = reinterpret_cast<char *>(new std::string);
  return 0;
}

extern "C" void peregrine_check_collation_deinit(UDF_INIT *init) {
  delete reinterpret_cast<std::string *>(init->ptr);
}

extern "C" char *peregrine_check_collation(UDF_INIT *init, UDF_ARGS *args, char *,
                                           unsigned long *length, char *is_null, char *) {
  std::string &answer = *reinterpret_cast<std::string *>(init->ptr);
  if (!args->args[0] || !args->args[1]) {
    *is_null = 1;
    return nullptr;
  }
  CHARSET_INFO *charset =
      get_charset(static_cast<uint>(*reinterpret_cast<longlong *>(args->args[0])), MYF(0));
  answer =
      charset ? check(charset, *reinterpret_cast<longlong *>(args->args[1])) : "unknown collation";
  *length = answer.size();
  return answer.data();
}
