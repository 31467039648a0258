/* Which way up is a line of text in a camera's frame? PP-OCR's classifier reads it where it lies: nothing is copied.
 *
 *   classify_frame FRAME LEFT TOP [THREADS]
 *
 * FRAME holds 480 x 640 pixels, 3 bytes each: here a file that is mapped, on a board the camera's buffer. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cls.h"

enum { ROWS = 480, COLUMNS = 640, LINE_ROWS = 48, LINE_COLUMNS = 192 };

/* All the memory there is: static, so that it is known to be there when the program was linked. */
static _Alignas(CLS_MEMORY_ALIGNMENT) unsigned char memory[CLS_MEMORY_BYTES];

static int fail(const char *what, int code) {
  fprintf(stderr, "classify_frame: %s (%d)\n", what, code);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return fail("usage: classify_frame FRAME LEFT TOP [THREADS]", argc);
  const long left = atol(argv[2]), top = atol(argv[3]);
  if (left < 0 || top < 0 || left > COLUMNS - LINE_COLUMNS || top > ROWS - LINE_ROWS) return fail("no such line", 2);

  const int file = open(argv[1], O_RDONLY);
  struct stat facts;
  if (file < 0 || fstat(file, &facts) || facts.st_size < (long)ROWS * COLUMNS * 3) return fail("no frame", 2);
  const unsigned char *frame = mmap(NULL, (size_t)ROWS * COLUMNS * 3, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (frame == MAP_FAILED) return fail("the frame cannot be mapped", 2);

  cls_program program;
  float scores[2];
  int code = cls_init(&program, memory, sizeof memory);
  if (code == CLS_OK) code = cls_set_input(&program, 0, frame + (top * COLUMNS + left) * 3);
  if (code == CLS_OK) code = cls_set_output(&program, 0, scores);
  if (code == CLS_OK && argc > 4) code = cls_start_threads(&program, atol(argv[4]));
  if (code == CLS_OK) code = cls_run(&program);
  cls_stop_threads(&program);
  if (code != CLS_OK) return fail("the program did not run", code);
  printf("upright %.6f, upside down %.6f\n", scores[0], scores[1]);
  return 0;
}
