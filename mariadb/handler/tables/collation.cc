/* Copyright (C) The Peregrine developers. Licence: GPL version 2 (see mariadb/handler/LICENSE). */

#include "tables/collation.h"
#include "peregrine.h"

#include <atomic>
#include <memory>
#include <new>

namespace peregrine {

namespace {

/* Fields of the engine's number of a collation. */
constexpr uint32_t kNumberBits = 16;
constexpr uint32_t kNumberMask = (1u << kNumberBits) - 1;
constexpr uint32_t kCharactersMask = 0x7FFF;
constexpr uint32_t kPadded = 1u << 31;

constexpr uint kMaxLevels = 4;
constexpr uint kMaxUnit = 4;

/* The bytes after a run of spaces. */
constexpr uchar kLongestShortRun = 100;
constexpr uchar kLongRunThenLess = 101;
constexpr uchar kEnd = 128;
constexpr uchar kLongRunThenGreater = 154;

enum class Form {
  kBytes, /* the value's bytes are its weights */
  kTable, /* each byte has a weight of a byte */
  kBig5,  /* single bytes have a weight of a byte, pairs of bytes are their own weights */
  kUnits, /* weights from the server's function, in units of one size, at some levels */
  kWidth  /* weights from the server's function, padded to the column's width */
};

/* How sort keys of a collation are computed. */
struct Weights {
  CHARSET_INFO *charset;
  Form form;
  bool pads;
  bool is_thai; /* tone marks are compared last, after spaces at the end */
  uint levels;
  uint unit;
  uint level_flags[kMaxLevels];
  uchar space[kMaxLevels][kMaxUnit];
};

/* Writes the bytes that fit, and counts the bytes needed. */
class Output {
 public:
  Output(uchar *to, size_t capacity) : to_(to), capacity_(capacity) {}

  void byte(uchar b) {
    if (length_ < capacity_) to_[length_] = b;
    length_++;
  }
  void bytes(const uchar *b, size_t n) {
    if (length_ + n <= capacity_) memcpy(to_ + length_, b, n);
    length_ += n;
  }
  void number(size_t n) {
    byte(static_cast<uchar>(n >> 8));
    byte(static_cast<uchar>(n));
  }
  size_t length() const { return length_; }

 private:
  uchar *to_;
  size_t capacity_;
  size_t length_ = 0;
};

void end_run(Output &out, size_t spaces, int next) {
  if (next == 0) {
    out.byte(kEnd);
  } else if (next < 0) {
    if (spaces <= kLongestShortRun) {
      out.byte(static_cast<uchar>(spaces));
    } else {
      out.byte(kLongRunThenLess);
      out.number(spaces);
    }
  } else {
    if (spaces <= kLongestShortRun) {
      out.byte(static_cast<uchar>(255 - spaces));
    } else {
      out.byte(kLongRunThenGreater);
      out.number(65535 - spaces);
    }
  }
}

/* Writes the weights of a collation that pads. */
void write_padded(Output &out, const uchar *weights, size_t length, uint unit, const uchar *space) {
  const uchar *end = weights + length - length % unit;
  const uchar *at = weights;
  while (at < end) {
    /* Writes everything up to the next space at once. */
    const uchar *run = at;
    while (run < end && memcmp(run, space, unit) != 0) run += unit;
    out.bytes(at, static_cast<size_t>(run - at));
    if (run >= end) break;
    at = run;
    while (at < end && memcmp(at, space, unit) == 0) at += unit;
    if (at >= end) break;
    out.bytes(space, unit);
    end_run(out, static_cast<size_t>(at - run) / unit, memcmp(at, space, unit));
  }
  out.bytes(space, unit);
  end_run(out, 0, 0);
}

/* Writes the weights of a collation that does not pad. */
void write_unpadded(Output &out, const uchar *weights, size_t length, uint unit) {
  static const uchar zeros[kMaxUnit] = {0, 0, 0, 0};
  for (size_t i = 0; i + unit <= length; i += unit) {
    out.bytes(weights + i, unit);
    if (memcmp(weights + i, zeros, unit) == 0) out.byte(1);
  }
  out.bytes(zeros, unit);
  out.byte(0);
}

size_t transform(CHARSET_INFO *charset, uchar *to, size_t capacity, const uchar *value,
                 size_t length, uint flags) {
  return charset->coll->strnxfrm(charset, to, capacity, static_cast<uint>(capacity), value, length,
                                 flags);
}

/* Returns whether every byte has one weight, that of the collation's table. */
bool is_table(CHARSET_INFO *charset) {
  if (charset->mbmaxlen != 1 || !charset->sort_order ||
      charset->levels_for_order != MY_CS_COLL_LEVELS_S1)
    return false;
  for (uint byte = 0; byte < 256; byte++) {
    uchar from[2] = {static_cast<uchar>(byte), 'b'}, to[8];
    if (transform(charset, to, sizeof to, from, 2, 0) != 2 || to[0] != charset->sort_order[byte] ||
        to[1] != charset->sort_order[static_cast<uchar>('b')])
      return false;
  }
  return true;
}

bool is_of_units(Weights &w) {
  CHARSET_INFO *charset = w.charset;
  if (charset->state & MY_CS_STRNXFRM_BAD_NWEIGHTS) return false;
  uchar blank[4];
  charset->fill(reinterpret_cast<char *>(blank), charset->mbminlen, ' ');
  w.levels = 0;
  for (uint bit = 0; bit < 8; bit++) {
    if (!(charset->levels_for_order & 1u << bit)) continue;
    if (w.levels == kMaxLevels) return false;
    w.level_flags[w.levels++] = MY_STRXFRM_LEVEL1 << bit;
  }
  /* A single level need not be named, and some functions do not know its name. */
  if (w.levels == 1) w.level_flags[0] = 0;
  if (w.levels == 0) return false;
  for (uint level = 0; level < w.levels; level++) {
    uchar to[64];
    size_t length =
        transform(charset, to, sizeof to, blank, charset->mbminlen, w.level_flags[level]);
    if (length == 0 || length > kMaxUnit) return false;
    if (level == 0)
      w.unit = static_cast<uint>(length);
    else if (length != w.unit)
      return false;
    memcpy(w.space[level], to, length);
  }
  return true;
}

std::unique_ptr<Weights> find_weights(CHARSET_INFO *charset) {
  std::unique_ptr<Weights> w(new (std::nothrow) Weights{});
  if (!w) return w;
  w->charset = charset;
  w->pads = !(charset->state & MY_CS_NOPAD);
  w->is_thai = strncmp(charset->coll_name.str, "tis620_thai", 11) == 0;
  w->levels = 1;
  w->unit = 1;
  w->space[0][0] = ' ';
  /* Compared by code, because the server gives all rare characters the same weight. */
  const bool is_big5 =
      charset->sort_order && strncmp(charset->coll_name.str, "big5_chinese", 12) == 0;
  if ((charset->state & MY_CS_BINSORT) && charset->mbminlen == 1 &&
      !(charset->state & MY_CS_NONASCII)) {
    w->form = Form::kBytes;
  } else if (is_big5) {
    w->form = Form::kBig5;
    w->space[0][0] = charset->sort_order[static_cast<uchar>(' ')];
  } else if (is_table(charset)) {
    w->form = Form::kTable;
    w->space[0][0] = charset->sort_order[static_cast<uchar>(' ')];
  } else if (is_of_units(*w)) {
    w->form = Form::kUnits;
  } else {
    w->form = Form::kWidth;
  }
  return w;
}

std::atomic<Weights *> known[kNumberMask + 1];

const Weights *weights_of(uint32_t collation) {
  std::atomic<Weights *> &place = known[collation & kNumberMask];
  Weights *found = place.load(std::memory_order_acquire);
  if (likely(found != nullptr)) return found;
  CHARSET_INFO *charset = get_charset(collation & kNumberMask, MYF(0));
  if (!charset) return nullptr;
  std::unique_ptr<Weights> made = find_weights(charset);
  /* The first thread to set the weights wins. They are never freed: collations are few. */
  if (made && place.compare_exchange_strong(found, made.get())) return made.release();
  return found;
}

/* A buffer that is on the stack for strings of ordinary length. */
class Buffer {
 public:
  explicit Buffer(size_t size)
      : heap_(size > sizeof stack_ ? new (std::nothrow) uchar[size] : nullptr),
        failed_(size > sizeof stack_ && !heap_) {}
  uchar *get() { return heap_ ? heap_.get() : stack_; }
  bool failed() const { return failed_; }

 private:
  uchar stack_[2048];
  std::unique_ptr<uchar[]> heap_;
  bool failed_;
};

/* The most weights of a character for each of its bytes. */
constexpr size_t kWeightsPerByte = 8;

}  // namespace

uint32_t engine_collation(CHARSET_INFO *charset, size_t characters, bool padded) {
  uint32_t number = charset->number & kNumberMask;
  const Weights *w = weights_of(number);
  if (w && w->form == Form::kWidth)
    number |= static_cast<uint32_t>(MY_MIN(characters, kCharactersMask)) << kNumberBits;
  if (padded && (charset->state & MY_CS_NOPAD)) number |= kPadded;
  return number;
}

uint32_t longest_sort_key(uint32_t collation, size_t characters) {
  const Weights *w = weights_of(collation);
  if (!w) return UINT32_MAX;
  /* The server's own bound for the output of its function. */
  size_t longest = w->charset->strnxfrmlen(characters * w->charset->mbmaxlen);
  if (w->form != Form::kWidth) {
    /* Each level has the same number of weights. An extra byte follows each weight that is zero, or
       that is a space before another character. Then come the end, and the number of characters. */
    if (w->form != Form::kUnits) longest = characters * w->charset->mbmaxlen;
    longest += longest / w->unit + w->levels * (w->unit + 1) + 2;
  }
  return static_cast<uint32_t>(MY_MIN(longest, UINT32_MAX));
}

extern "C" size_t peregrine_plugin_sort_key(uint32_t collation, const uint8_t *value, size_t length,
                                            uint32_t prefix_characters, uint8_t *out,
                                            size_t capacity) {
  const Weights *w = weights_of(collation);
  if (unlikely(!w)) return SIZE_MAX;
  CHARSET_INFO *charset = w->charset;
  if (prefix_characters != UINT32_MAX) {
    const char *begin = reinterpret_cast<const char *>(value);
    length = MY_MIN(length, charset->charpos(begin, begin + length, prefix_characters));
  }
  Output output(out, capacity);
  const bool is_char = collation & kPadded;
  auto write = [&](const uchar *weights, size_t n, uint level) {
    /* Levels above the first pad in all collations. */
    if (w->pads || is_char || level > 0)
      write_padded(output, weights, n, w->unit, w->space[level]);
    else
      write_unpadded(output, weights, n, w->unit);
  };
  switch (w->form) {
    case Form::kBytes:
      write(value, length, 0);
      break;
    case Form::kTable: {
      Buffer buffer(length);
      if (buffer.failed()) return PEREGRINE_NO_SORT_KEY_MEMORY;
      uchar *to = buffer.get();
      for (size_t i = 0; i < length; i++) to[i] = charset->sort_order[value[i]];
      write(to, length, 0);
      break;
    }
    case Form::kBig5: {
      Buffer buffer(length);
      if (buffer.failed()) return PEREGRINE_NO_SORT_KEY_MEMORY;
      uchar *to = buffer.get();
      for (size_t i = 0; i < length; i++) {
        const char *at = reinterpret_cast<const char *>(value) + i;
        if (my_ismbchar(charset, at, at + (length - i)) == 2) {
          to[i] = value[i];
          i++;
          to[i] = value[i];
        } else {
          to[i] = charset->sort_order[value[i]];
        }
      }
      write(to, length, 0);
      break;
    }
    case Form::kUnits: {
      size_t room = length * kWeightsPerByte + 16;
      Buffer buffer(room);
      if (buffer.failed()) return PEREGRINE_NO_SORT_KEY_MEMORY;
      for (uint level = 0; level < w->levels; level++) {
        size_t n = transform(charset, buffer.get(), room, value, length, w->level_flags[level]);
        write(buffer.get(), n, level);
        if (is_char && level == 0) {
          const char *begin = reinterpret_cast<const char *>(value);
          size_t characters = charset->cset->numchars(charset, begin, begin + length);
          output.number(32768 + n / w->unit - characters);
        }
      }
      break;
    }
    case Form::kWidth: {
      size_t characters = collation >> kNumberBits & kCharactersMask;
      if (prefix_characters != UINT32_MAX)
        characters = MY_MIN(characters ? characters : prefix_characters, prefix_characters);
      if (w->pads && !w->is_thai)
        length = charset->lengthsp(reinterpret_cast<const char *>(value), length);
      size_t width = charset->strnxfrmlen(characters * charset->mbmaxlen);
      Buffer buffer(width);
      if (buffer.failed()) return PEREGRINE_NO_SORT_KEY_MEMORY;
      size_t n = charset->coll->strnxfrm(charset, buffer.get(), width,
                                         static_cast<uint>(characters), value, length,
                                         MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
      memset(buffer.get() + n, 0, width - n);
      output.bytes(buffer.get(), width);
      break;
    }
  }
  return output.length();
}

}  // namespace peregrine
