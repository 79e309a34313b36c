"""Result formats: from record batches of terms to text in JSON, XML, CSV, TSV or an RDF syntax."""
