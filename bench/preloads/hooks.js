'use strict'

// The floor: what async_hooks itself costs a tool that must know of every resource and of every callback.

require('node:async_hooks').createHook({ init () {}, before () {}, after () {} }).enable()
