// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A dma-heap over the kernel's contiguous memory area (CMA), for kernels that have the area and no heaps: Debian's.
 *
 * /dev/dma_heap/reserved has the ioctl of the kernel's own heaps (uapi/linux/dma-heap.h) and gives dma-bufs. Their
 * pages are mapped one by one, so that /proc/self/pagemap shows which they are. All memory is of the area: where the
 * DMA API would fall back to other pages, there is none.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <uapi/linux/dma-heap.h>

struct heap_buffer {
	struct page *pages;
	dma_addr_t address;
	size_t nbytes;
};

static struct platform_device *area; /* whose memory is that of the default area */

static void free_pages_of(struct heap_buffer *buffer)
{
	dma_free_pages(&area->dev, buffer->nbytes, buffer->pages, buffer->address, DMA_BIDIRECTIONAL);
}

static struct sg_table *heap_map(struct dma_buf_attachment *attachment, enum dma_data_direction direction)
{
	struct heap_buffer *buffer = attachment->dmabuf->priv;
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL);
	int error;

	if (!table)
		return ERR_PTR(-ENOMEM);
	error = sg_alloc_table(table, 1, GFP_KERNEL);
	if (error)
		goto no_table;
	sg_set_page(table->sgl, buffer->pages, buffer->nbytes, 0);
	error = dma_map_sgtable(attachment->dev, table, direction, 0);
	if (!error)
		return table;
	sg_free_table(table);
no_table:
	kfree(table);
	return ERR_PTR(error);
}

static void heap_unmap(struct dma_buf_attachment *attachment, struct sg_table *table, enum dma_data_direction direction)
{
	dma_unmap_sgtable(attachment->dev, table, direction, 0);
	sg_free_table(table);
	kfree(table);
}

static int heap_begin_access(struct dma_buf *file, enum dma_data_direction direction)
{
	struct heap_buffer *buffer = file->priv;

	dma_sync_single_for_cpu(&area->dev, buffer->address, buffer->nbytes, direction);
	return 0;
}

static int heap_end_access(struct dma_buf *file, enum dma_data_direction direction)
{
	struct heap_buffer *buffer = file->priv;

	dma_sync_single_for_device(&area->dev, buffer->address, buffer->nbytes, direction);
	return 0;
}

static int heap_mmap(struct dma_buf *file, struct vm_area_struct *vma)
{
	struct heap_buffer *buffer = file->priv;
	unsigned long page = vma->vm_pgoff, at = vma->vm_start;
	int error = 0;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	for (; at < vma->vm_end && !error; at += PAGE_SIZE)
		error = vm_insert_page(vma, at, buffer->pages + page++);
	return error;
}

static void heap_release(struct dma_buf *file)
{
	free_pages_of(file->priv);
	kfree(file->priv);
}

static const struct dma_buf_ops buffer_operations = {
	.map_dma_buf = heap_map,
	.unmap_dma_buf = heap_unmap,
	.begin_cpu_access = heap_begin_access,
	.end_cpu_access = heap_end_access,
	.mmap = heap_mmap,
	.release = heap_release,
};

static int heap_allocate(size_t nbytes, int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct heap_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	struct dma_buf *file;
	int fd;

	if (!buffer)
		return -ENOMEM;
	/* The DMA API takes no single page from the area. */
	buffer->nbytes = max_t(size_t, PAGE_ALIGN(nbytes), 2 * PAGE_SIZE);
	buffer->pages = dma_alloc_pages(&area->dev, buffer->nbytes, &buffer->address, DMA_BIDIRECTIONAL, GFP_KERNEL);
	if (!buffer->pages)
		goto no_pages;
	if (!page_count(buffer->pages + 1)) /* pages of the area are counted one by one, others as one */
		goto no_file;
	info.ops = &buffer_operations;
	info.size = buffer->nbytes;
	info.flags = flags;
	info.priv = buffer;
	file = dma_buf_export(&info);
	if (IS_ERR(file))
		goto no_file;
	fd = dma_buf_fd(file, flags);
	if (fd < 0)
		dma_buf_put(file); /* which releases the buffer */
	return fd;
no_file:
	free_pages_of(buffer);
no_pages:
	kfree(buffer);
	return -ENOMEM;
}

static long heap_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct dma_heap_allocation_data data;
	int fd;

	if (command != DMA_HEAP_IOCTL_ALLOC)
		return -ENOTTY;
	if (copy_from_user(&data, (void __user *)argument, sizeof(data)))
		return -EFAULT;
	if (data.fd || (data.fd_flags & ~DMA_HEAP_VALID_FD_FLAGS) || data.heap_flags || !data.len)
		return -EINVAL;
	if (data.len > (__u64)totalram_pages() << PAGE_SHIFT)
		return -ENOMEM;
	fd = heap_allocate(data.len, data.fd_flags);
	if (fd < 0)
		return fd;
	data.fd = fd;
	return copy_to_user((void __user *)argument, &data, sizeof(data)) ? -EFAULT : 0;
}

static const struct file_operations operations = { .owner = THIS_MODULE, .unlocked_ioctl = heap_ioctl };

static struct miscdevice node = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "cma_heap",
	.nodename = "dma_heap/reserved",
	.fops = &operations,
};

static int __init heap_init(void)
{
	int error;

	area = platform_device_register_simple("cma_heap", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(area))
		return PTR_ERR(area);
	error = dma_coerce_mask_and_coherent(&area->dev, DMA_BIT_MASK(64));
	if (!error)
		error = misc_register(&node);
	if (error)
		platform_device_unregister(area);
	return error;
}

static void __exit heap_exit(void)
{
	misc_deregister(&node);
	platform_device_unregister(area);
}

module_init(heap_init);
module_exit(heap_exit);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("A dma-heap over the kernel's contiguous memory area");
