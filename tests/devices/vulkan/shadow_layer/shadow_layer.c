/* A Vulkan layer that makes any driver's host memory non-coherent, so that missing barriers are seen.
 *
 * The host gets a shadow of each mapped memory. vkFlushMappedMemoryRanges copies a range from the shadow to the driver's
 * memory and vkInvalidateMappedMemoryRanges copies one back; nothing else does. Imported host memory is its own shadow:
 * the driver imports a block of the layer's instead, one for all imports of the same bytes. No memory type is coherent. Memory imported from a file descriptor is
 * shared by others, so the driver keeps it, and only this process's mapping is a shadow.
 *
 * What the host has not invalidated reads as 0xA5.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

enum { POISON = 0xA5, PAGE = 4096, MOST_DISPATCHES = 16 };

typedef struct Block {
    struct Block *next;
    char *host;
    char *content; /* what the driver imports instead of the bytes at host */
    VkDeviceSize size;
    int imports;
} Block;

typedef struct Memory {
    struct Memory *next;
    VkDeviceMemory handle;
    VkDeviceSize size;
    char *imported; /* the host memory that the application imported, or NULL */
    Block *block;   /* what the driver imported instead */
    char *shadow;   /* where the host sees it, NULL while it is not mapped */
    char *real;     /* where the driver has mapped it */
} Memory;

typedef struct {
    void *key; /* the loader's dispatch table, which is the same for all handles of an instance or a device */
    PFN_vkGetInstanceProcAddr next_instance;
    PFN_vkGetDeviceProcAddr next_device;
    VkInstance instance;
    /* Found while the instance is created: afterwards the loader's own functions, which call this layer, are found. */
    PFN_vkDestroyInstance destroy_instance;
    PFN_vkGetPhysicalDeviceMemoryProperties memory_properties;
    PFN_vkGetPhysicalDeviceMemoryProperties2 memory_properties_2;
} Dispatch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Dispatch dispatches[MOST_DISPATCHES];
static Memory *memories;
static Block *blocks;

static void *key_of(void *handle) { return *(void **)handle; }

static Dispatch *find(void *handle) {
    for (int i = 0; i < MOST_DISPATCHES; i++)
        if (dispatches[i].key == key_of(handle)) return &dispatches[i];
    abort();
}

static Dispatch *new_dispatch(void *handle) {
    for (int i = 0; i < MOST_DISPATCHES; i++)
        if (!dispatches[i].key || dispatches[i].key == key_of(handle)) return &dispatches[i];
    abort();
}

static Memory *memory_of(VkDeviceMemory handle) {
    for (Memory *m = memories; m; m = m->next)
        if (m->handle == handle) return m;
    abort();
}

#define DEVICE(handle, name) ((PFN_##name)find(handle)->next_device(handle, #name))

static void hide_coherence(VkPhysicalDeviceMemoryProperties *properties) {
    for (uint32_t i = 0; i < properties->memoryTypeCount; i++)
        properties->memoryTypes[i].propertyFlags &= ~(VkMemoryPropertyFlags)VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

static VKAPI_ATTR void VKAPI_CALL memory_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *found) {
    find(device)->memory_properties(device, found);
    hide_coherence(found);
}

static VKAPI_ATTR void VKAPI_CALL memory_properties_2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *found) {
    find(device)->memory_properties_2(device, found);
    hide_coherence(&found->memoryProperties);
}

static void *pages(VkDeviceSize size) {
    void *found = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
    if (!found) abort();
    return memset(found, POISON, size);
}

/* Returns the block for an import of host memory, which is one that exists where that has all of these bytes. */
static Block *block_for(char *host, VkDeviceSize size) {
    pthread_mutex_lock(&lock);
    Block *block = blocks;
    while (block && !(block->host <= host && host + size <= block->host + block->size)) block = block->next;
    if (!block) {
        block = calloc(1, sizeof *block);
        *block = (Block){.next = blocks, .host = host, .content = pages(size), .size = size};
        blocks = block;
    }
    block->imports++;
    pthread_mutex_unlock(&lock);
    return block;
}

static void release_block(Block *block) {
    if (!block || --block->imports) return;
    for (Block **link = &blocks; *link; link = &(*link)->next)
        if (*link == block) {
            *link = block->next;
            break;
        }
    free(block->content);
    free(block);
}

static VkImportMemoryHostPointerInfoEXT *find_import(const void *chain) {
    for (VkBaseOutStructure *each = (VkBaseOutStructure *)chain; each; each = each->pNext)
        if (each->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT)
            return (VkImportMemoryHostPointerInfoEXT *)each;
    return NULL;
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *callbacks, VkDeviceMemory *found) {
    VkImportMemoryHostPointerInfoEXT *import = find_import(info->pNext);
    char *imported = import ? import->pHostPointer : NULL;
    Block *block = import ? block_for(imported, info->allocationSize) : NULL;
    if (import) import->pHostPointer = block->content + (imported - block->host);
    VkResult result = DEVICE(device, vkAllocateMemory)(device, info, callbacks, found);
    if (import) import->pHostPointer = imported;
    if (result != VK_SUCCESS) {
        pthread_mutex_lock(&lock);
        release_block(block);
        pthread_mutex_unlock(&lock);
        return result;
    }
    Memory *memory = calloc(1, sizeof *memory);
    memory->handle = *found;
    memory->size = info->allocationSize;
    memory->imported = imported;
    memory->block = block;
    pthread_mutex_lock(&lock);
    memory->next = memories;
    memories = memory;
    pthread_mutex_unlock(&lock);
    return VK_SUCCESS;
}

static void unshadow(Memory *memory) {
    if (memory->shadow != memory->imported) free(memory->shadow);
    memory->shadow = NULL;
}

static VKAPI_ATTR void VKAPI_CALL release(VkDevice device, VkDeviceMemory handle, const VkAllocationCallbacks *callbacks) {
    DEVICE(device, vkFreeMemory)(device, handle, callbacks);
    pthread_mutex_lock(&lock);
    for (Memory **link = &memories; *link; link = &(*link)->next)
        if ((*link)->handle == handle) {
            Memory *memory = *link;
            *link = memory->next;
            unshadow(memory);
            release_block(memory->block);
            free(memory);
            break;
        }
    pthread_mutex_unlock(&lock);
}

static VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice device, VkDeviceMemory handle, VkDeviceSize offset, VkDeviceSize size,
                                          VkMemoryMapFlags flags, void **found) {
    (void)size; /* all is mapped */
    void *real;
    VkResult result = DEVICE(device, vkMapMemory)(device, handle, 0, VK_WHOLE_SIZE, flags, &real);
    if (result != VK_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    Memory *memory = memory_of(handle);
    memory->real = real;
    memory->shadow = memory->imported ? memory->imported : pages(memory->size);
    *found = memory->shadow + offset;
    pthread_mutex_unlock(&lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL unmap(VkDevice device, VkDeviceMemory handle) {
    pthread_mutex_lock(&lock);
    unshadow(memory_of(handle));
    pthread_mutex_unlock(&lock);
    DEVICE(device, vkUnmapMemory)(device, handle);
}

static void copy(uint32_t count, const VkMappedMemoryRange *ranges, int to_device) {
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        Memory *memory = memory_of(ranges[i].memory);
        VkDeviceSize start = ranges[i].offset, rest = memory->size - start;
        VkDeviceSize size = ranges[i].size < rest ? ranges[i].size : rest; /* VK_WHOLE_SIZE is larger than any rest */
        if (to_device)
            memcpy(memory->real + start, memory->shadow + start, size);
        else
            memcpy(memory->shadow + start, memory->real + start, size);
    }
    pthread_mutex_unlock(&lock);
}

static VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
    copy(count, ranges, 1);
    return DEVICE(device, vkFlushMappedMemoryRanges)(device, count, ranges);
}

static VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
    VkResult result = DEVICE(device, vkInvalidateMappedMemoryRanges)(device, count, ranges);
    copy(count, ranges, 0);
    return result;
}

/* Returns the loader's link to the next layer. */
static VkBaseInStructure *link_info(const void *chain, VkStructureType type) {
    for (VkBaseInStructure *each = (VkBaseInStructure *)chain; each; each = (VkBaseInStructure *)each->pNext)
        if (each->sType == type && ((VkLayerInstanceCreateInfo *)each)->function == VK_LAYER_LINK_INFO) return each;
    abort();
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *callbacks, VkInstance *found) {
    VkLayerInstanceCreateInfo *link =
        (VkLayerInstanceCreateInfo *)link_info(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    VkResult result = ((PFN_vkCreateInstance)next(NULL, "vkCreateInstance"))(info, callbacks, found);
    if (result != VK_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    *new_dispatch(*found) = (Dispatch){
        .key = key_of(*found),
        .next_instance = next,
        .instance = *found,
        .destroy_instance = (PFN_vkDestroyInstance)next(*found, "vkDestroyInstance"),
        .memory_properties =
            (PFN_vkGetPhysicalDeviceMemoryProperties)next(*found, "vkGetPhysicalDeviceMemoryProperties"),
        .memory_properties_2 =
            (PFN_vkGetPhysicalDeviceMemoryProperties2)next(*found, "vkGetPhysicalDeviceMemoryProperties2"),
    };
    pthread_mutex_unlock(&lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkDevice *found) {
    VkLayerDeviceCreateInfo *link =
        (VkLayerDeviceCreateInfo *)link_info(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    PFN_vkGetInstanceProcAddr instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    PFN_vkGetDeviceProcAddr next = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateDevice create = (PFN_vkCreateDevice)instance(find(physical)->instance, "vkCreateDevice");
    VkResult result = create(physical, info, callbacks, found);
    if (result != VK_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    *new_dispatch(*found) = (Dispatch){.key = key_of(*found), .next_device = next};
    pthread_mutex_unlock(&lock);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance, const VkAllocationCallbacks *callbacks) {
    PFN_vkDestroyInstance destroy = find(instance)->destroy_instance;
    pthread_mutex_lock(&lock);
    find(instance)->key = NULL;
    pthread_mutex_unlock(&lock);
    destroy(instance, callbacks);
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks *callbacks) {
    PFN_vkDestroyDevice destroy = DEVICE(device, vkDestroyDevice);
    pthread_mutex_lock(&lock);
    find(device)->key = NULL;
    pthread_mutex_unlock(&lock);
    destroy(device, callbacks);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL shadow_instance_function(VkInstance instance, const char *name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL shadow_device_function(VkDevice device, const char *name);

static PFN_vkVoidFunction own_function(const char *name) {
    static const struct {
        const char *name;
        void *function;
    } own[] = {
        {"vkGetInstanceProcAddr", shadow_instance_function},
        {"vkGetDeviceProcAddr", shadow_device_function},
        {"vkCreateInstance", create_instance},
        {"vkDestroyInstance", destroy_instance},
        {"vkCreateDevice", create_device},
        {"vkDestroyDevice", destroy_device},
        {"vkGetPhysicalDeviceMemoryProperties", memory_properties},
        {"vkGetPhysicalDeviceMemoryProperties2", memory_properties_2},
        {"vkGetPhysicalDeviceMemoryProperties2KHR", memory_properties_2},
        {"vkAllocateMemory", allocate},
        {"vkFreeMemory", release},
        {"vkMapMemory", map},
        {"vkUnmapMemory", unmap},
        {"vkFlushMappedMemoryRanges", flush},
        {"vkInvalidateMappedMemoryRanges", invalidate},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i].name, name)) return (PFN_vkVoidFunction)own[i].function;
    return NULL;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL shadow_device_function(VkDevice device, const char *name) {
    PFN_vkVoidFunction own = own_function(name);
    return own ? own : find(device)->next_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL shadow_instance_function(VkInstance instance, const char *name) {
    PFN_vkVoidFunction own = own_function(name);
    return own || !instance ? own : find(instance)->next_instance(instance, name);
}

VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface) {
    interface->pfnGetInstanceProcAddr = shadow_instance_function;
    interface->pfnGetDeviceProcAddr = shadow_device_function;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
