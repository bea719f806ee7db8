#pragma once

// Every generated kernel includes this file. The include set decides which prelude.h is meant.

#include "prelude.h"

#include "activations.h"
#include "elementwise.h"
#include "functions.h"
#include "integers.h"
#include "loops.h"
#include "sync.h"

#include "blocks.h"
#include "bulk.h"
#include "exchange.h"
#include "folds.h"
#include "joined.h"
#include "lookups.h"
#include "operands.h"
#include "parts.h"
#include "ring.h"
#include "scatter.h"
#include "tiles.h"

#include "add_rows.h"
#include "few_rows.h"
#include "tile_product.h"
#include "tma_tiles.h"
