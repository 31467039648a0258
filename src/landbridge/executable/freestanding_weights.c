/* The weights of a program, made by Landbridge; lb_name.h says how it is used. */
#include <stdint.h>

#ifndef LB_NAME_WEIGHTS_SECTION
#define LB_NAME_WEIGHTS_SECTION
#endif
LB_ARRAYS
