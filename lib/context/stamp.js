'use strict'

// A mark on any object that nobody can see: a class whose constructor returns its argument and which declares
// a private field installs that field on the argument. No inspect, no own key, no proxy trap sees it, and
// frozen objects take it. Reading is as fast as a property, as long as one place in the source sees few shapes of
// objects and one field: therefore promises, of which there are most, have a class and a field of their own.

/** @typedef {import('./context').Context} Context */

class Same extends Object {
  /** As a derived class that does not call super(), it has V8 make no object only to throw it away. @param {object} object */
  constructor (object) {
    if (object === undefined) super()
    return object
  }
}

/** The context of a promise. */
class OnPromise extends Same {
  /** @type {Context} */
  #context

  /** @param {object} promise @param {Context} context */
  constructor (promise, context) {
    super(promise)
    this.#context = context
  }

  /** @param {any} promise @returns {Context | undefined} */
  static read (promise) {
    return #context in promise ? promise.#context : undefined
  }

  /** To look first is dear where the field is not there, as is the rule. @param {any} promise @param {Context} context */
  static write (promise, context) {
    try {
      return new OnPromise(promise, context)
    } catch (error) {
      if (!(#context in promise)) throw error // a full stack
      promise.#context = context
    }
  }
}

/** The context of any other resource. */
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

  /** Node reuses some resources (HTTP parsers): stamp again, don't fail. @param {any} resource @param {Context} context */
  static write (resource, context) {
    try {
      return new OnResource(resource, context)
    } catch (error) {
      if (!(#context in resource)) throw error // a full stack
      resource.#context = context
    }
  }

  /** The same for what has been stamped before, as likely as not. @param {any} resource @param {Context} context */
  static rewrite (resource, context) {
    if (#context in resource) resource.#context = context
    else return new OnResource(resource, context)
  }
}

/** The context of whatever it is, for rooms that are not hot. */
const stamp = {
  /** @param {object} object @returns {Context | undefined} */
  read: (object) => OnResource.read(object) ?? OnPromise.read(object),

  /** @param {object} resource @param {Context} context */
  write (resource, context) {
    OnResource.rewrite(resource, context)
  }
}

/**
 * Makes an independent kind of mark.
 * @template T
 * @returns {{ read(object: object): T | undefined, write(object: object, value: T): void }}
 */
function createStamp () {
  class Stamp extends Same {
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
      else return new Stamp(object, value)
    }
  }
  return Stamp
}

module.exports = { OnPromise, OnResource, stamp, createStamp }
