#include "squid.h"
#include <stdio.h>

int main(void) {
    squid_model *model = squid_create(NULL, 0, 1);   /* default sizes, one thread */
    double v;
    size_t n;
    squid_set_param(model, "squid.soma.Na.gbar", 110.0);   /* mS/cm2, as the header's table says */
    squid_init(model);
    squid_step(model, 2000);
    squid_read(model, "squid.soma.v", &v, 1, &n);
    printf("v after 20 ms: %.3f mV\n", v);
    squid_destroy(model);
}
