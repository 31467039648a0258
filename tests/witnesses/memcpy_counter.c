/* Preloaded into a process: its own memcpy and memmove, which count the calls that move 4 KiB or more. */
#include <stdatomic.h>
#include <stddef.h>

#define LARGE 4096

static atomic_long calls, bytes;

long counter_calls(void) { return calls; }
long counter_bytes(void) { return bytes; }
void counter_reset(void) { calls = bytes = 0; }

static void note(size_t n)
{
    if (n >= LARGE) {
        calls++;
        bytes += (long)n;
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    note(n);
    for (size_t i = 0; i < n; i++)
        d[i] = s[i];
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    note(n);
    if (d < s || d >= s + n)
        for (size_t i = 0; i < n; i++)
            d[i] = s[i];
    else
        while (n--)
            d[n] = s[n];
    return to;
}

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    if (room < n)
        __builtin_trap();
    return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    if (room < n)
        __builtin_trap();
    return memmove(to, from, n);
}
