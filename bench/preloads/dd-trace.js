'use strict'

// Preload of dd-trace itself. The agent address in the environment does not exist: spans are encoded and
// dropped.

require('dd-trace/init')
