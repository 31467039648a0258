// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The edu card by the kernel's DMA API, for a device of ours in user space: memory whose pages are mapped for the card
 * once, and synchronized when user space says so. Where the kernel bounces (swiotlb=force), a sync is a copy, and a
 * missing one leaves the other side with old bytes.
 *
 * /dev/edu_dma: mmap gives the memory, in chunks that follow each other; read and poll wait for the card's interrupt;
 * two ioctls give the card's addresses and synchronize a range.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#define CHUNK_ORDER 6 /* 256 KiB, the largest that swiotlb bounces */
#define CHUNK (PAGE_SIZE << CHUNK_ORDER)
#define CHUNKS 16

struct edu_sync {
	__u64 offset, nbytes;
	__u32 for_device, unused;
};

#define EDU_ADDRESSES _IOR('e', 1, __u64[CHUNKS])
#define EDU_SYNC _IOW('e', 2, struct edu_sync)

static struct page *pages[CHUNKS];
static dma_addr_t addresses[CHUNKS];
static struct pci_dev *card;
static DECLARE_WAIT_QUEUE_HEAD(waiting);
static atomic_t interrupts = ATOMIC_INIT(0);

static irqreturn_t on_interrupt(int irq, void *unused)
{
	atomic_inc(&interrupts);
	wake_up_interruptible(&waiting);
	return IRQ_HANDLED;
}

static ssize_t edu_read(struct file *file, char __user *to, size_t nbytes, loff_t *offset)
{
	int count;

	if (nbytes != sizeof(count))
		return -EINVAL;
	if (wait_event_interruptible(waiting, atomic_read(&interrupts)))
		return -ERESTARTSYS;
	count = atomic_xchg(&interrupts, 0);
	return copy_to_user(to, &count, sizeof(count)) ? -EFAULT : sizeof(count);
}

static __poll_t edu_poll(struct file *file, poll_table *table)
{
	poll_wait(file, &waiting, table);
	return atomic_read(&interrupts) ? EPOLLIN : 0;
}

static int edu_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long nbytes = vma->vm_end - vma->vm_start;
	int i, error = 0;

	if (vma->vm_pgoff || nbytes != CHUNKS * CHUNK)
		return -EINVAL;
	for (i = 0; i < CHUNKS && !error; i++)
		error = remap_pfn_range(vma, vma->vm_start + i * CHUNK, page_to_pfn(pages[i]), CHUNK, vma->vm_page_prot);
	return error;
}

static long edu_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct edu_sync sync;
	__u64 found[CHUNKS];
	int i;

	switch (command) {
	case EDU_ADDRESSES:
		for (i = 0; i < CHUNKS; i++)
			found[i] = addresses[i];
		return copy_to_user((void __user *)argument, found, sizeof(found)) ? -EFAULT : 0;
	case EDU_SYNC:
		if (copy_from_user(&sync, (void __user *)argument, sizeof(sync)))
			return -EFAULT;
		if (sync.offset > CHUNKS * CHUNK || sync.nbytes > CHUNKS * CHUNK - sync.offset)
			return -EINVAL;
		while (sync.nbytes) {
			__u64 i = sync.offset / CHUNK, within = sync.offset % CHUNK;
			__u64 part = min_t(__u64, sync.nbytes, CHUNK - within);

			if (sync.for_device)
				dma_sync_single_range_for_device(&card->dev, addresses[i], within, part, DMA_BIDIRECTIONAL);
			else
				dma_sync_single_range_for_cpu(&card->dev, addresses[i], within, part, DMA_BIDIRECTIONAL);
			sync.offset += part;
			sync.nbytes -= part;
		}
		return 0;
	}
	return -ENOTTY;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = edu_read,
	.poll = edu_poll,
	.mmap = edu_mmap,
	.unlocked_ioctl = edu_ioctl,
};

static struct miscdevice node = { .minor = MISC_DYNAMIC_MINOR, .name = "edu_dma", .fops = &operations };

static void give_back(void)
{
	int i;

	for (i = 0; i < CHUNKS && pages[i]; i++) {
		if (addresses[i])
			dma_unmap_page(&card->dev, addresses[i], CHUNK, DMA_BIDIRECTIONAL);
		__free_pages(pages[i], CHUNK_ORDER);
		pages[i] = NULL;
	}
}

static int edu_probe(struct pci_dev *found, const struct pci_device_id *id)
{
	int i, error;

	card = found;
	error = pcim_enable_device(card);
	if (!error)
		error = dma_set_mask_and_coherent(&card->dev, DMA_BIT_MASK(28));
	if (error)
		return error;
	pci_set_master(card);
	for (i = 0; i < CHUNKS; i++) {
		pages[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO, CHUNK_ORDER);
		if (!pages[i])
			goto no_memory;
		addresses[i] = dma_map_page(&card->dev, pages[i], 0, CHUNK, DMA_BIDIRECTIONAL);
		if (dma_mapping_error(&card->dev, addresses[i])) {
			addresses[i] = 0;
			goto no_memory;
		}
	}
	error = pci_alloc_irq_vectors(card, 1, 1, PCI_IRQ_MSI);
	if (error > 0)
		error = devm_request_irq(&card->dev, pci_irq_vector(card, 0), on_interrupt, 0, "edu", card);
	if (!error)
		error = misc_register(&node);
	if (error)
		give_back();
	return error;
no_memory:
	give_back();
	return -ENOMEM;
}

static void edu_remove(struct pci_dev *found)
{
	misc_deregister(&node);
	give_back();
}

static const struct pci_device_id cards[] = { { PCI_DEVICE(0x1234, 0x11e8) }, { 0 } };
static struct pci_driver edu_driver = { .name = "edu_dma", .id_table = cards, .probe = edu_probe, .remove = edu_remove };

module_pci_driver(edu_driver);
MODULE_DEVICE_TABLE(pci, cards);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("QEMU's edu card by the DMA API");
