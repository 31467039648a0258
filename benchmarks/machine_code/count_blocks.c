/* A QEMU plugin: how often each block of translated code began, as lines "address instructions count" of the
   file out=NAME when the program ends. What of QEMU's plugin interface (version 1) it uses stands here, as Debian has no
   header of it. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef struct qemu_info qemu_info;
enum inline_op { ADD_U64 };
typedef void (*translated)(plugin_id, struct qemu_plugin_tb *);
typedef void (*ended)(plugin_id, void *);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, translated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, enum inline_op, void *, uint64_t);
void qemu_plugin_register_atexit_cb(plugin_id, ended, void *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct block {
    struct block *next;
    uint64_t address, instructions, count;
};

static struct block *blocks;
static FILE *out;

static void on_translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    struct block *b = calloc(1, sizeof *b);
    (void)id;
    if (b == NULL)
        abort();
    b->address = qemu_plugin_tb_vaddr(tb);
    b->instructions = qemu_plugin_tb_n_insns(tb);
    b->next = blocks; /* translation has a lock of its own */
    blocks = b;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &b->count, 1);
}

static void on_end(plugin_id id, void *data)
{
    (void)id, (void)data;
    for (const struct block *b = blocks; b; b = b->next)
        if (b->count)
            fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->address, b->instructions, b->count);
    fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const qemu_info *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "out=", 4) == 0)
            out = fopen(argv[i] + 4, "w");
    if (out == NULL)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_end, NULL);
    return 0;
}
