// oneDNN's <oneapi/dnnl/dnnl.h>, whose functions are found at run time, after
// coconet::OpenOneDnn(). Nothing of oneDNN is linked: the linker reports functions that are missing
// in the list below.
#ifndef COCONET_THIRD_PARTY_ONEDNN_INCLUDE_ONEAPI_DNNL_DNNL_H_
#define COCONET_THIRD_PARTY_ONEDNN_INCLUDE_ONEAPI_DNNL_DNNL_H_

#include_next <oneapi/dnnl/dnnl.h>

#ifndef COCONET_LINKED_ONEDNN
#include "third_party/onednn/open_onednn.h"

#define COCONET_ONEDNN(name) COCONET_DYNAMIC_FUNCTION(::coconet::onednn_library, name)
#define dnnl_engine_create COCONET_ONEDNN(dnnl_engine_create)
#define dnnl_engine_destroy COCONET_ONEDNN(dnnl_engine_destroy)
#define dnnl_matmul_desc_init COCONET_ONEDNN(dnnl_matmul_desc_init)
#define dnnl_memory_create COCONET_ONEDNN(dnnl_memory_create)
#define dnnl_memory_desc_equal COCONET_ONEDNN(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size COCONET_ONEDNN(dnnl_memory_desc_get_size)
#define dnnl_memory_desc_init_by_strides COCONET_ONEDNN(dnnl_memory_desc_init_by_strides)
#define dnnl_memory_desc_init_by_tag COCONET_ONEDNN(dnnl_memory_desc_init_by_tag)
#define dnnl_memory_destroy COCONET_ONEDNN(dnnl_memory_destroy)
#define dnnl_memory_set_data_handle COCONET_ONEDNN(dnnl_memory_set_data_handle)
#define dnnl_post_ops_append_sum COCONET_ONEDNN(dnnl_post_ops_append_sum)
#define dnnl_post_ops_create COCONET_ONEDNN(dnnl_post_ops_create)
#define dnnl_post_ops_destroy COCONET_ONEDNN(dnnl_post_ops_destroy)
#define dnnl_primitive_attr_create COCONET_ONEDNN(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy COCONET_ONEDNN(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_fpmath_mode COCONET_ONEDNN(dnnl_primitive_attr_set_fpmath_mode)
#define dnnl_primitive_attr_set_post_ops COCONET_ONEDNN(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_attr_set_scratchpad_mode \
  COCONET_ONEDNN(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_create COCONET_ONEDNN(dnnl_primitive_create)
#define dnnl_primitive_desc_create COCONET_ONEDNN(dnnl_primitive_desc_create)
#define dnnl_primitive_desc_destroy COCONET_ONEDNN(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_query COCONET_ONEDNN(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md COCONET_ONEDNN(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy COCONET_ONEDNN(dnnl_primitive_destroy)
#define dnnl_primitive_execute COCONET_ONEDNN(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create COCONET_ONEDNN(dnnl_reorder_primitive_desc_create)
#define dnnl_sgemm COCONET_ONEDNN(dnnl_sgemm)
#define dnnl_stream_create COCONET_ONEDNN(dnnl_stream_create)
#define dnnl_stream_destroy COCONET_ONEDNN(dnnl_stream_destroy)
#define dnnl_stream_wait COCONET_ONEDNN(dnnl_stream_wait)
#endif

#endif  // COCONET_THIRD_PARTY_ONEDNN_INCLUDE_ONEAPI_DNNL_DNNL_H_
