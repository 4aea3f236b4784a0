'use strict'

// Tags on any object, invisible to programs. A class whose constructor returns its argument and that declares
// a private field installs that field on the argument. No inspect, own key or proxy trap sees it, and frozen
// objects accept it. Reads are as fast as a property, as long as each place in the source sees few object
// shapes and one field. So promises and other frequent objects have their own class and field.

const { hiddenProperty } = require('../objects')

/**
 * @typedef {import('./context').Context} Context
 * @typedef {NonNullable<ReturnType<typeof import('./records').copyOn>>} Copy
 * @typedef {InstanceType<typeof import('./state-changes').Changes>} Changes
 */

class Same extends Object {
  /**
   * A derived class that does not call super() saves V8 from creating an object and discarding it.
   * @param {object} object
   */
  constructor (object) {
    if (object === undefined) super()
    return object
  }
}

/** A separate base class: V8 does not inline one that several classes share. */
class SamePromise extends Object {
  /** @param {object} promise */
  constructor (promise) {
    if (promise === undefined) super()
    return promise
  }
}

/**
 * Reference of a promise's record, if Node gives promises no id; 0: longstack's own promise. See records.js.
 */
class OnPromise extends SamePromise {
  /** @type {number} */
  #ref

  /** @param {object} promise @param {number} ref */
  constructor (promise, ref) {
    super(promise)
    this.#ref = ref
  }

  /** @param {any} promise @returns {number | undefined} */
  static read (promise) {
    return #ref in promise ? promise.#ref : undefined
  }

  /**
   * Checks for the field only after a failure: it rarely exists.
   * @param {any} promise
   * @param {number} ref
   */
  static write (promise, ref) {
    try {
      return new OnPromise(promise, ref)
    } catch (error) {
      if (!(#ref in promise)) throw error // a full stack
      promise.#ref = ref
    }
  }
}

/** Context of an object that has none by its async id, or a different one. */
class OnResource extends Same {
  /** @type {Context} */
  #context

  /** @param {object} resource @param {Context} context */
  constructor (resource, context) {
    super(resource)
    this.#context = context
  }

  /** @param {any} resource @returns {Context | undefined} */
  static read (resource) {
    return #context in resource ? resource.#context : undefined
  }

  /** Checks first: the object is often tagged already. @param {any} resource @param {Context} context */
  static write (resource, context) {
    if (#context in resource) resource.#context = context
    else return new OnResource(resource, context)
  }
}

/** Changes of an object. Every server response has them from the start. */
class OnChanged extends Same {
  /** @type {Changes} */
  #changes

  /** @param {object} object @param {Changes} changes */
  constructor (object, changes) {
    super(object)
    this.#changes = changes
  }

  /** @param {any} object @returns {Changes | undefined} */
  static read (object) {
    return #changes in object ? object.#changes : undefined
  }

  /** @param {any} object @param {Changes} changes */
  static write (object, changes) {
    if (#changes in object) object.#changes = changes
    else return new OnChanged(object, changes)
  }
}

/** Copy of its record that a resource carries. */
class OnCarrier extends Same {
  /** @type {Copy} */
  #copy

  /** @param {object} resource @param {Copy} copy */
  constructor (resource, copy) {
    super(resource)
    this.#copy = copy
  }

  /** @param {any} resource @returns {Copy | undefined} */
  static read (resource) {
    return #copy in resource ? resource.#copy : undefined
  }

  /** @param {any} resource @param {Copy} copy */
  static write (resource, copy) {
    if (#copy in resource) resource.#copy = copy
    else return new OnCarrier(resource, copy)
  }
}

/**
 * Creates an independent kind of tag.
 * @template T
 * @returns {{ read(object: object): T | undefined, write(object: object, value: T): void }}
 */
function createTag () {
  class Tag extends Same {
    /** @type {T} */
    #value

    /** @param {object} object @param {T} value */
    constructor (object, value) {
      super(object)
      this.#value = value
    }

    /** @param {any} object @returns {T | undefined} */
    static read (object) {
      return #value in object ? object.#value : undefined
    }

    /** @param {any} object @param {T} value */
    static write (object, value) {
      if (#value in object) object.#value = value
      else return new Tag(object, value)
    }
  }
  return Tag
}

// Ids that async_hooks gave to promises. It keeps the id on the promise, under its own symbol
// (async_id_symbol in lib/internal/async_hooks.js).

const trackedId = hiddenProperty('async_id_symbol')

/**
 * Returns the async id of a promise that async_hooks tracks, 0 if it has none.
 * @param {any} promise
 * @returns {number}
 */
function idOfTracked (promise) {
  const id = trackedId(promise)
  return typeof id === 'number' ? id : 0
}

/** Counter for the callbacks of a resource with the flag COUNTED. */
const counterTag = /** @type {ReturnType<typeof createTag<{ receive: () => void }>>} */ (createTag())

module.exports = { OnCarrier, OnChanged, OnPromise, OnResource, counterTag, createTag, idOfTracked }
