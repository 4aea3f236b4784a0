'use strict'

// The lower bound: the cost of async_hooks itself for a tool that observes every resource and every callback.

require('node:async_hooks').createHook({ init () {}, before () {}, after () {} }).enable()
