/* What the engine tells of where no call returns an error, in the C interface of Peregrine. As in
   peregrine.h. */

#ifndef PEREGRINE_TOLD_H
#define PEREGRINE_TOLD_H

#include "peregrine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peregrine_message_level {
  PEREGRINE_MESSAGE_ERROR = 0,
  PEREGRINE_MESSAGE_WARNING = 1,
  PEREGRINE_MESSAGE_NOTE = 2
} peregrine_message_level;

/* Is told a message: one line in UTF-8, not NUL-terminated. Any thread may call it, with locks of the
   engine held: it calls no function of the engine. `level`: a peregrine_message_level. */
typedef void (*peregrine_tell)(uint32_t level, const char *text, size_t length);

/* From now on `tell` is told what happens, also in the opening of an engine; NULL: nobody is. When
   this returns, the function given before is called no more. The same message comes at most once in
   ten seconds, with how often it was left out; so do at most 32 different ones. */
void peregrine_tell_to(peregrine_tell tell);

#ifdef __cplusplus
}
#endif

#endif /* PEREGRINE_TOLD_H */
