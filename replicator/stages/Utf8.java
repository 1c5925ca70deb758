package replicator.stages;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Whether bytes are a text in UTF-8, which on Spark 3.5 no function says (types.md section 7): a text that Java makes
 * of bytes has other characters where they are none. Compiled where it is needed (replicator/jvm/java_udfs.py).
 */
public final class Utf8 implements UDF1 {
    private static final long serialVersionUID = 1L;

    /** NULL of NULL. */
    public Object call(Object given) {
        if (given == null) return null;
        byte[] bytes = (byte[]) given;
        String text = new String(bytes, StandardCharsets.UTF_8);
        return Boolean.valueOf(Arrays.equals(text.getBytes(StandardCharsets.UTF_8), bytes));
    }
}
