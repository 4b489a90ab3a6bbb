// Vulkan's functions, found at run time: the one place where volk's code is compiled.
#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#include <volk.h>
