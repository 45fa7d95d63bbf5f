/* A driver library for machines without a card: CARDS cards, of which card 0 is computed on by process HOLDER.
   The names and structures are those of NVIDIA's nvml.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
struct memory { unsigned version; u64 total, reserved, free, used; };
struct process { unsigned pid; u64 used; unsigned instance, compute_instance; };

static int cards[CARDS];
static int index_of(void *device) { return (int)((int *)device - cards); }

int nvmlInit_v2(void) {
#ifdef HANGS
    sleep(600);
#endif
    return 0;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "570.00"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12080; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = CARDS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &cards[index]; return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned size) { (void)device; snprintf(text, size, "Fake H200"); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "GPU-" NAME "-%d", index_of(device));
    return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory) {
    memory->total = 80ull << 30;
    memory->used = index_of(device) == 0 ? 7ull << 30 : 4ull << 20;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *rows) {
    *count = index_of(device) == 0;
    rows[0].pid = HOLDER;
    rows[0].used = 7ull << 30;
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    *major = 9;
    *minor = 0;
    return 0;
}
