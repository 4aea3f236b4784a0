'use strict'

// A preload that does nothing but observe: hooks of both kinds, empty. Node itself behaves differently under
// any hook (ids of promises, frames of its own below microtasks, another path for promises in V8), so only
// what these hooks leave intact can be asked of longstack.

const { createHook } = require('node:async_hooks')
const { promiseHooks } = require('node:v8')

createHook({ init () {}, before () {}, after () {} }).enable()
promiseHooks.createHook({ init () {}, before () {}, after () {}, settled () {} })
