'use strict'

// Its own preload; the environment says that there is no agent, so that spans are encoded and then dropped.

require('dd-trace/init')
