'use strict'

// dd-trace's own preload. The address of its agent in the environment does not exist: spans are encoded and
// dropped.

require('dd-trace/init')
