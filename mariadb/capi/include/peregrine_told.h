/* Messages of the engine about events for which no call returns an error, in the C interface of
   Peregrine. The rules of peregrine.h hold here too. */

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

/* Receives a message: one line in UTF-8, not NUL-terminated. Any thread may call this function,
   with locks of the engine held, so it must not call the engine. `level`: a
   peregrine_message_level. */
typedef void (*peregrine_tell)(uint32_t level, const char *text, size_t length);

/* Sends all messages from now on to `tell`, also those of the opening of an engine; NULL: to no
   function. When this returns, the engine no longer calls the previous function. The same message
   comes at most once in ten seconds, with the number of times it was left out; at most 32 different
   messages come in that time. */
void peregrine_tell_to(peregrine_tell tell);

#ifdef __cplusplus
}
#endif

#endif /* PEREGRINE_TOLD_H */
