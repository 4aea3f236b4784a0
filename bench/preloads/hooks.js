'use strict'

// Lower bound: the cost of async_hooks for a tool that observes every resource and callback.

require('node:async_hooks').createHook({ init () {}, before () {}, after () {} }).enable()
