'use strict'

require('longjohn')
