"""The Gateway API, as far as a HAProxy whose configuration never changes serves it well."""
