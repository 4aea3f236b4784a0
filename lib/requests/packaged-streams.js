'use strict'

// Finds the stream classes of readable-stream, a copy of Node's streams. npm has several versions, many
// packages use them, and some install them under an alias.

const { types } = require('node:util')
const { isObject, own } = require('../objects')
const { isWrapper } = require('../wrap')

const file =
  /[\\/]readable-stream[^\\/]*[\\/]lib[\\/](internal[\\/]streams[\\/]|_stream_)(writ|read|dupl)(able|ex)\.js$/

/** Returns the prototypes of stream classes whose methods are not wrapped yet. @returns {object[]} */
function findPrototypes () {
  const { cache } = require
  if (types.isProxy(cache)) return []
  const modules = Object.keys(cache).filter((name) => file.test(name)).map((name) => own(cache, name))
  return modules.map(prototypeOf).filter(isObject).filter((prototype) => {
    return ['destroy', 'end'].every((name) => !isWrapper(own(prototype, name)))
  })
}

/** @param {unknown} module @returns {unknown} prototype of the exported class */
function prototypeOf (module) {
  const made = isObject(module) ? own(module, 'exports') : undefined
  return typeof made === 'function' && !types.isProxy(made) ? own(made, 'prototype') : undefined
}

module.exports = { findPrototypes }
