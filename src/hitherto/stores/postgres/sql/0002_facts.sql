-- What else is known of a fact, as a JSON object: whom it is known to, what it is about, what took its place.
ALTER TABLE fact ADD COLUMN more text NOT NULL DEFAULT '{}';
