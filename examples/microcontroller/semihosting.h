/* Semihosting: a debugger, or QEMU, does input and output for the processor (Arm's specification, ARM IHI 0068). */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stdint.h>

void print(const char *text);
/* In decimal. */
void print_number(uint32_t number);
/* With six digits behind the point, for magnitudes below 4000. */
void print_float(float number);
/* Fill memory from the file called name on the host; 0 unless it had that many bytes. */
int read_file(const char *name, void *memory, uint32_t bytes);
/* Make the file called name on the host; 0 unless all was written. */
int write_file(const char *name, const void *memory, uint32_t bytes);
/* End the program, with status 0 for success. */
void finish(int status) __attribute__((noreturn));

#endif
